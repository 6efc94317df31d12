//! Figures as pictures: SVG, written by hand, readable on light and dark pages.

use std::fmt::Write;

use crate::rounds::Spread;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 46.0;
const BAR: f64 = 26.0;

/// Colours that differ in lightness too.
const COLOURS: [&str; 10] =
    ["#0b6e4f", "#d1495b", "#2e86ab", "#edae49", "#6d597a", "#8d99ae", "#bc6c25", "#3a86ff", "#111111", "#d81159"];

/// Bars with their spread, the shortest first as given, on a scale from zero or, where they differ by more than 30
/// times, a logarithmic one.
#[must_use]
pub fn bars(title: &str, unit: &str, bars: &[(String, Spread)]) -> String {
    let most = bars.iter().map(|(_, bar)| bar.max).fold(f64::MIN_POSITIVE, f64::max);
    let least = bars.iter().map(|(_, bar)| bar.min).fold(most, f64::min).max(most / 1e6);
    let logarithmic = most / least > 30.0;
    let scale = if logarithmic { Scale::log(least, most) } else { Scale::linear(most) };
    let x = |value: f64| LEFT + scale.share(value) * (WIDTH - LEFT - RIGHT);
    let height = TOP + BAR * bars.len() as f64 + 34.0;
    let mut svg = open(height, title);
    let bottom = TOP + BAR * bars.len() as f64;
    for tick in &scale.ticks {
        let at = x(*tick);
        grid(&mut svg, (at, TOP), (at, bottom));
        text(&mut svg, (at, bottom + 14.0), "middle", &number(*tick));
    }
    let note = if logarithmic { ", logarithmic" } else { "" };
    text(
        &mut svg,
        (WIDTH - 8.0, bottom + 28.0),
        "end",
        &format!("{unit}{note}; bar: median, line: least and most of the rounds"),
    );
    for (i, (name, bar)) in bars.iter().enumerate() {
        let y = TOP + BAR * i as f64;
        let middle = y + BAR / 2.0;
        text(&mut svg, (LEFT - 8.0, middle + 4.0), "end", name);
        let colour = if name.starts_with("namesake") { COLOURS[0] } else { COLOURS[5] };
        let _ = writeln!(
            svg,
            r#"<rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{}" fill="{colour}"/>"#,
            y + 4.0,
            (x(bar.median) - LEFT).max(1.0),
            BAR - 8.0
        );
        let _ = writeln!(
            svg,
            r#"<line x1="{:.1}" x2="{:.1}" y1="{middle:.1}" y2="{middle:.1}" stroke="currentColor" stroke-width="2"/>"#,
            x(bar.min),
            x(bar.max)
        );
        text(&mut svg, (x(bar.max) + 6.0, middle + 4.0), "start", &number(bar.median));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Lines over a growing size, both scales logarithmic; a dashed line shows what doubles when the size doubles.
#[must_use]
pub fn growth(title: &str, across: &str, unit: &str, lines: &[(String, Vec<(f64, f64)>)]) -> String {
    let points = || lines.iter().flat_map(|(_, points)| points).filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let range = |of: fn(&(f64, f64)) -> f64| {
        points().map(of).fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), value| (least.min(value), most.max(value)))
    };
    if points().next().is_none() {
        return format!("{}</svg>\n", open(TOP, title));
    }
    let ((least_x, most_x), (least_y, most_y)) = (range(|point| point.0), range(|point| point.1));
    let (scale_x, scale_y) = (Scale::log(least_x, most_x), Scale::log(least_y, most_y));
    let (height, bottom) = (420.0, 370.0);
    let (left, right) = (70.0, WIDTH - 190.0);
    let x = |value: f64| left + scale_x.share(value) * (right - left);
    let y = |value: f64| bottom - scale_y.share(value) * (bottom - TOP);
    let mut svg = open(height, title);
    for tick in &scale_x.ticks {
        grid(&mut svg, (x(*tick), TOP), (x(*tick), bottom));
        text(&mut svg, (x(*tick), bottom + 16.0), "middle", &number(*tick));
    }
    for tick in &scale_y.ticks {
        grid(&mut svg, (left, y(*tick)), (right, y(*tick)));
        text(&mut svg, (left - 6.0, y(*tick) + 4.0), "end", &number(*tick));
    }
    text(&mut svg, (right, bottom + 34.0), "end", across);
    text(&mut svg, (8.0, TOP - 8.0), "start", unit);
    // From the lower left corner, as far as it goes within the frame.
    let steps = (scale_x.to / scale_x.from).min(scale_y.to / scale_y.from);
    let ends = ((x(scale_x.from), y(scale_y.from)), (x(scale_x.from * steps), y(scale_y.from * steps)));
    let ((x1, y1), (x2, y2)) = ends;
    let _ = writeln!(
        svg,
        r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="currentColor" stroke-dasharray="3 5" opacity="0.6"/>"#
    );
    for (i, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let points: Vec<_> = points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0).collect();
        let path: Vec<String> = points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
        let _ =
            writeln!(svg, r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#, path.join(" "));
        for point in &points {
            let _ = writeln!(svg, r#"<circle cx="{:.1}" cy="{:.1}" r="3.5" fill="{colour}"/>"#, x(point.0), y(point.1));
        }
        let at = TOP + 18.0 * i as f64 + 6.0;
        let _ = writeln!(
            svg,
            r#"<rect x="{:.1}" y="{:.1}" width="12" height="12" fill="{colour}"/>"#,
            right + 14.0,
            at - 10.0
        );
        text(&mut svg, (right + 31.0, at), "start", name);
    }
    text(&mut svg, (right + 14.0, TOP + 18.0 * lines.len() as f64 + 6.0), "start", "- - - linear growth");
    svg.push_str("</svg>\n");
    svg
}

/// Where a value stands between the ends of an axis.
struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

impl Scale {
    fn linear(most: f64) -> Self {
        let ten = 10_f64.powf(most.log10().floor());
        let step = [0.2, 0.5, 1.0, 2.0]
            .into_iter()
            .map(|part| part * ten)
            .find(|step| most / step <= 6.0)
            .unwrap_or(ten * 2.0);
        let count = (most / step).ceil();
        Self {
            from: 0.0,
            to: step * count,
            logarithmic: false,
            ticks: (0..=count as u32).map(|i| f64::from(i) * step).collect(),
        }
    }

    fn log(least: f64, most: f64) -> Self {
        let from = least.log10().floor();
        let to = most.log10().ceil().max(from + 1.0);
        let ticks = (0..=(to - from) as i32).map(|i| 10_f64.powf(from + f64::from(i))).collect();
        Self { from: 10_f64.powf(from), to: 10_f64.powf(to), logarithmic: true, ticks }
    }

    fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value.max(self.from) / self.from).log10() / (self.to / self.from).log10()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }
}

fn open(height: f64, title: &str) -> String {
    // Shown alone in a browser it has the page's own white; within another page it takes that one's colour of text.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\" color=\"#444\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let _ = writeln!(svg, r#"<text x="8" y="20" font-size="15" fill="currentColor">{}</text>"#, escaped(title));
    svg
}

fn grid(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        svg,
        r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="currentColor" opacity="0.2"/>"#
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="currentColor">{}</text>"#,
        escaped(text)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// With three digits that count.
fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_twice_as_long_is_twice_as_much_and_names_are_escaped() {
        let one = |name: &str, value| (name.to_owned(), Spread { median: value, min: value, max: value });
        let svg = bars("a < b", "µs", &[one("echo", 2.0), one("namesake", 4.0)]);
        let widths: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<rect x=\"150\""))
            .filter_map(|line| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(widths.len(), 2, "{svg}");
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01 && svg.contains("a &lt; b"), "{svg}");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            ["0", "2.07", "31.3", "1000", "0.05"],
            [0.0, 2.071, 31.33, 1000.0, 0.05].map(number).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn growth_of_nothing_is_a_picture_too() {
        assert!(growth("none", "services", "µs", &[]).ends_with("</svg>\n"));
        let svg = growth("some", "services", "µs", &[("a".into(), vec![(100.0, 2.0), (1e5, 3.0)])]);
        assert_eq!(svg.matches("<circle").count(), 2);
    }
}
