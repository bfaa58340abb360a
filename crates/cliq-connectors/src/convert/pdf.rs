//! PDF to text. `pdf-extract` reads the file and says where each character stands; here they become words, lines and paragraphs.

use pdf_extract::{Document, MediaBox, OutputDev, OutputError, Transform, output_doc};

/// The text of a PDF, page after page.
pub(super) fn to_markdown(bytes: &[u8]) -> Result<String, String> {
    if !bytes[..bytes.len().min(1024)].windows(5).any(|window| window == b"%PDF-") {
        return Err("it is not a PDF".to_owned());
    }
    let mut document = Document::load_mem(bytes).map_err(|error| format!("it is broken: {error}"))?;
    // Many are encrypted with no password, only so that programs ask what is allowed.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err("it needs a password".to_owned());
    }
    let mut pages = Pages::default();
    output_doc(&document, &mut pages).map_err(|error| error.to_string())?;
    let pages: Vec<String> =
        pages.pages.iter().map(|page| layout(page)).filter(|page| !page.is_empty()).collect();
    if pages.is_empty() {
        return Err("it has no text: it may consist of pictures".to_owned());
    }
    Ok(pages.join("\n\n") + "\n")
}

/// A character, or several that are drawn as one.
#[derive(Debug, Clone)]
struct Glyph {
    x: f64,
    /// From the bottom of the page.
    y: f64,
    width: f64,
    size: f64,
    text: String,
}

#[derive(Default)]
struct Pages {
    pages: Vec<Vec<Glyph>>,
}

impl OutputDev for Pages {
    fn begin_page(
        &mut self,
        _: u32,
        _: &MediaBox,
        _: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.pages.push(Vec::new());
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        _: f64,
        font_size: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        let size = ((place.m11 * place.m22 - place.m12 * place.m21).abs().sqrt() * font_size).abs();
        if let Some(page) = self
            .pages
            .last_mut()
            .filter(|_| size.is_finite() && place.m31.is_finite() && place.m32.is_finite())
        {
            page.push(Glyph {
                x: place.m31,
                y: place.m32,
                width: width * size,
                size: size.max(0.1),
                text: plain(text),
            });
        }
        Ok(())
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        Ok(())
    }
}

/// Ligatures as the letters that they are made of; no characters that are not seen.
fn plain(text: &str) -> String {
    text.replace('\u{fb00}', "ff")
        .replace('\u{fb01}', "fi")
        .replace('\u{fb02}', "fl")
        .replace('\u{fb03}', "ffi")
        .replace('\u{fb04}', "ffl")
        .replace(['\u{a0}', '\t'], " ")
        .chars()
        .filter(|c| !c.is_control() && *c != '\u{ad}')
        .collect()
}

/// The text of a page, in the order in which it is drawn: that of reading in nearly all documents, and in columns too.
fn layout(glyphs: &[Glyph]) -> String {
    let mut lines: Vec<Vec<&Glyph>> = Vec::new();
    for glyph in glyphs.iter().filter(|glyph| !glyph.text.is_empty()) {
        match lines.last_mut().and_then(|line| line.last().copied().map(|last| (line, last))) {
            Some((line, last)) if is_same_line(last, glyph) => line.push(glyph),
            _ => lines.push(vec![glyph]),
        }
    }
    let mut text = String::new();
    let mut before: Option<&Glyph> = None;
    for line in &lines {
        let words = words(line);
        let Some(first) = line.first().copied().filter(|_| !words.trim().is_empty()) else { continue };
        if let Some(last) = before {
            let distance = (last.y - first.y).abs();
            text.push_str(if distance > 1.7 * last.size.min(first.size) { "\n\n" } else { "\n" });
        }
        text.push_str(words.trim_end());
        before = Some(first);
    }
    text.trim().to_owned()
}

fn is_same_line(last: &Glyph, next: &Glyph) -> bool {
    let size = last.size.max(next.size);
    // Not back to the left: that is another line, or another column.
    (last.y - next.y).abs() < 0.5 * size && next.x > last.x - size
}

/// The width of a letter whose font does not say it, in its size: that of nearly all fonts in which letters are equally wide.
const UNKNOWN_WIDTH: f64 = 0.6;

/// The words of a line. A gap between letters is a blank; a wide one keeps columns apart.
fn words(line: &[&Glyph]) -> String {
    let mut text = String::new();
    let mut before: Option<(&Glyph, f64)> = None;
    for glyph in line {
        // Without widths, all letters that are drawn at once seem to stand in the same place.
        let (start, width) = match (glyph.width > 0.0, before) {
            (true, _) => (glyph.x, glyph.width),
            (false, Some((last, end))) if (last.x - glyph.x).abs() < 0.01 => {
                (end, UNKNOWN_WIDTH * glyph.size)
            }
            (false, _) => (glyph.x, UNKNOWN_WIDTH * glyph.size),
        };
        if let Some((last, end)) = before {
            let gap = (start - end) / last.size.max(glyph.size);
            let has_blank = text.ends_with(' ') || glyph.text.starts_with(' ');
            if gap > 1.5 && !text.trim().is_empty() {
                text.push_str("   ");
            } else if gap > 0.16 && !has_blank {
                text.push(' ');
            }
        }
        text.push_str(&glyph.text);
        before = Some((glyph, start + width));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(text: &str, x: f64, y: f64, step: f64, width: f64) -> Vec<Glyph> {
        let glyph = |(n, c): (usize, char)| Glyph {
            x: x + n as f64 * step,
            y,
            width,
            size: 10.0,
            text: c.to_string(),
        };
        text.chars().enumerate().filter(|(_, c)| *c != '_').map(glyph).collect()
    }

    #[test]
    fn words_lines_and_paragraphs() {
        let mut page = draw("one_two", 0.0, 100.0, 5.0, 5.0);
        page.extend(draw("next", 0.0, 88.0, 5.0, 5.0));
        page.extend(draw("far", 0.0, 50.0, 5.0, 5.0));
        assert_eq!(layout(&page), "one two\nnext\n\nfar");
    }

    #[test]
    fn letters_without_a_width_are_not_torn_apart() {
        assert_eq!(layout(&draw("cliq_demo_--plan", 0.0, 0.0, 6.0, 0.0)), "cliq demo --plan");
    }

    #[test]
    fn columns_of_a_table_are_apart() {
        let mut page = draw("name", 0.0, 0.0, 5.0, 5.0);
        page.extend(draw("42", 100.0, 0.0, 5.0, 5.0));
        assert_eq!(layout(&page), "name   42");
    }

    #[test]
    fn invalid_pdf_is_refused() {
        for bytes in [&b""[..], b"hello", b"%PDF-1.7\n%%EOF", b"%PDF-"] {
            assert!(to_markdown(bytes).is_err());
        }
    }
}
