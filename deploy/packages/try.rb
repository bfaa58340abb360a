# Installs a formula as Homebrew does, without Homebrew: ruby try.rb FORMULA ARCHIVES PREFIX. Of the methods of a formula it has those that
# ours uses; another one is an error.
require "digest"
require "fileutils"

formula, archives, prefix = ARGV

class Place
  def initialize(dir) = @dir = dir
  def to_s = @dir

  def install(*what)
    FileUtils.mkdir_p(@dir)
    what.flatten.each do |file|
      renamed = file.is_a?(Hash) ? file : { file => File.basename(file) }
      renamed.each { |from, to| FileUtils.cp(from, File.join(@dir, to), preserve: true) }
    end
  end
end

class Formula
  @@systems = []
  class << self
    attr_reader :blocks, :found
    def field(name, value = nil) = (@fields ||= {})[name] = value || @fields[name]
    %i[desc homepage version license].each { |name| define_method(name) { |value = nil| field(name, value) } }
    def on_macos = nil
    def on_linux = yield
    def on_arm = RUBY_PLATFORM.start_with?("aarch64") && yield
    def on_intel = RUBY_PLATFORM.start_with?("x86_64") && yield
    def url(value = nil) = field(:url, value)
    def sha256(value = nil) = field(:sha256, value)
    def test(&block) = @test = block
    def check = @test
  end
  attr_accessor :prefix
  def version = self.class.version
  def bin = Place.new(File.join(prefix, "bin"))
  def man1 = Place.new(File.join(prefix, "share/man/man1"))
  def bash_completion = Place.new(File.join(prefix, "etc/bash_completion.d"))
  def zsh_completion = Place.new(File.join(prefix, "share/zsh/site-functions"))
  def fish_completion = Place.new(File.join(prefix, "share/fish/vendor_completions.d"))
  def shell_output(command) = `#{command}`.tap { raise "#{command} failed" unless $?.success? }
  def assert_match(wanted, text) = text.include?(wanted) || raise("#{wanted} is not in #{text}")
end

load formula
archive = File.join(archives, File.basename(Cliq.url))
raise "#{archive} is not what the formula names" unless Digest::SHA256.file(archive).hexdigest == Cliq.sha256
work = File.join(prefix, "work")
FileUtils.mkdir_p(work)
system("tar", "-xzf", archive, "-C", work, "--strip-components=1", exception: true)
cliq = Cliq.new
cliq.prefix = prefix
Dir.chdir(work) { cliq.install }
cliq.instance_eval(&Cliq.check)
