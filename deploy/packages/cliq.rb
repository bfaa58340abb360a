# Homebrew formula of a release. Made by scripts/packages; addresses and sums are those of SHA256SUMS.
class Cliq < Formula
  desc "Teams of agents that deliver something together"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license "MIT"

  on_macos do
    on_arm do
      url "@BASE@/cliq-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SUM:aarch64-apple-darwin@"
    end
    on_intel do
      url "@BASE@/cliq-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SUM:x86_64-apple-darwin@"
    end
  end
  on_linux do
    on_arm do
      url "@BASE@/cliq-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@SUM:aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@BASE@/cliq-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@SUM:x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "cliq", "cliq-agent"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/cliq.bash" => "cliq"
    zsh_completion.install "completions/_cliq"
    fish_completion.install "completions/cliq.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/cliq --version")
  end
end
