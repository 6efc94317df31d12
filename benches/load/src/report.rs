//! Figures as tables for people and as lines for programs.

use std::fmt::Write;

use crate::rounds::{Figures, Row, Sample, Spread};
use crate::servers::Kind;
use crate::udp::Pace;

/// A table in columns, as Markdown.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these headings; the first column is left-aligned, the others right.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// As text.
    #[must_use]
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, i: usize| row.get(i).cloned().unwrap_or_default();
        let widths: Vec<usize> =
            (0..columns).map(|i| self.rows.iter().map(|row| cell(row, i).chars().count()).max().unwrap_or(0)).collect();
        let mut text = String::new();
        for (n, row) in self.rows.iter().enumerate() {
            for (i, &width) in widths.iter().enumerate() {
                let value = cell(row, i);
                // Writing to a string can't fail.
                let _ = if i == 0 { write!(text, "| {value:width$} ") } else { write!(text, "| {value:>width$} ") };
            }
            text.push_str("|\n");
            if n == 0 {
                for (i, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width + usize::from(i == 0));
                    let _ = if i == 0 { write!(text, "|{dashes}-") } else { write!(text, "|{dashes}-:") };
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

/// `1.10 (1.05–1.13)`.
#[must_use]
pub fn spread(of: Spread, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$}–{:.digits$})", of.median, of.min, of.max)
}

/// The table of a scenario.
#[must_use]
pub fn servers(figures: &Figures) -> String {
    let headings = [
        "server",
        "answers/s",
        "CPU µs/answer",
        "user",
        "kernel",
        "÷ echo",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "PSS MB",
        "RSS MB",
        "lost",
        "wrong",
        "cut short %",
        "octets",
    ];
    let mut table = Table::new(&headings);
    for row in &figures.rows {
        let of = |figure: &dyn Fn(&Sample) -> f64| Spread::of(row.samples.iter().map(figure));
        let each = |seconds: f64, sample: &Sample| seconds * 1e6 / sample.tally.answered.max(1) as f64;
        let us = |share: f64| of(&|sample| sample.tally.latency.quantile(share).as_secs_f64() * 1e6).median;
        let sum = |count: &dyn Fn(&Sample) -> u64| row.samples.iter().map(count).sum::<u64>();
        let echo = figures.ratio(row.kind, Kind::Echo, Sample::cost);
        table.row(vec![
            row.kind.to_string(),
            format!("{:.0}", of(&|sample| sample.tally.rate()).median),
            spread(of(&Sample::cost), 2),
            format!("{:.2}", of(&|sample| each(sample.cpu.user, sample)).median),
            format!("{:.2}", of(&|sample| each(sample.cpu.kernel, sample)).median),
            echo.map_or(String::new(), |ratio| spread(ratio, 2)),
            format!("{:.0}", us(0.5)),
            format!("{:.0}", us(0.99)),
            format!("{:.0}", us(0.999)),
            format!("{:.1}", of(&|sample| sample.memory.pss as f64 / 1e6).median),
            format!("{:.1}", of(&|sample| sample.memory.rss as f64 / 1e6).median),
            (sum(&|sample| sample.tally.lost) + sum(&|sample| sample.tally.unsent)).to_string(),
            sum(&|sample| sample.tally.wrong).to_string(),
            format!(
                "{:.1}",
                of(&|sample| sample.tally.truncated as f64 * 100.0 / sample.tally.answered.max(1) as f64).median
            ),
            format!("{:.0}", of(&|sample| sample.tally.octets as f64 / sample.tally.answered.max(1) as f64).median),
        ]);
    }
    table.render()
}

/// Those of the others that are fast.
const FAST: [Kind; 3] = [Kind::Nsd, Kind::Knot, Kind::Hickory];

/// How ours stands to each of the others, and to the best of those that are fast.
#[must_use]
pub fn ratios(figures: &Figures) -> String {
    let mut table = Table::new(&["namesake ÷", "CPU/answer", "p50", "p99", "p99.9", "RSS"]);
    let others = figures.rows.iter().map(|row| row.kind).filter(|kind| *kind != Kind::Namesake);
    let mut against: Vec<(String, Vec<Kind>)> = others.map(|kind| (kind.to_string(), vec![kind])).collect();
    let there: Vec<Kind> = FAST.into_iter().filter(|kind| figures.row(*kind).is_some()).collect();
    if there.len() > 1 {
        let names: Vec<String> = there.iter().map(Kind::to_string).collect();
        against.push((format!("the best of {}", names.join(", ")), there));
    }
    for (name, kinds) in against {
        let ratio = |figure: &dyn Fn(&Sample) -> f64| {
            let ratio = figures.ratio_to_least(Kind::Namesake, &kinds, figure);
            ratio.map_or(String::new(), |ratio| spread(ratio, 3))
        };
        let quantile = |share: f64| move |sample: &Sample| sample.tally.latency.quantile(share).as_secs_f64();
        table.row(vec![
            name,
            ratio(&Sample::cost),
            ratio(&quantile(0.5)),
            ratio(&quantile(0.99)),
            ratio(&quantile(0.999)),
            ratio(&|sample| sample.memory.rss as f64),
        ]);
    }
    if figures.row(Kind::Namesake).is_some() { table.render() } else { String::new() }
}

/// What has to be known beside the tables: how it was asked, and what disturbed.
#[must_use]
pub fn heading(figures: &Figures, rounds: usize, seconds: f64) -> String {
    let pace = match figures.scenario.pace {
        Pace::Window(window) => format!("saturated, {window} outstanding"),
        Pace::Rate { rate, burst: 1 } => format!("paced, {rate:.0}/s"),
        Pace::Rate { rate, burst } => format!("paced, {rate:.0}/s, {burst} at once"),
    };
    let disturbed = match (figures.disturbed, figures.repeated) {
        (0, 0) => String::new(),
        (0, n) => format!("; {n} rounds were measured anew since the machine was busy with other things"),
        (n, _) => format!("; DISTURBED: in {n} rounds the machine was busy with other things"),
    };
    let wrong = if figures.wrong() > 0 { "; WRONG: not all answers are what they must be" } else { "" };
    format!("{}: {pace}; {rounds} rounds of {seconds} s{disturbed}{wrong}", figures.scenario.name)
}

/// Every sample as a line of tab-separated values, with a heading.
#[must_use]
pub fn lines(figures: &Figures) -> String {
    let mut text = String::from(
        "scenario\tserver\tround\tanswered\tseconds\tcpu_s\tuser_s\tkernel_s\tp50_us\tp99_us\tp999_us\tlost\tunsent\tlate\twrong\
         \ttruncated\tclosed\tpss\trss\tothers\n",
    );
    for Row { kind, samples } in &figures.rows {
        for (round, sample) in samples.iter().enumerate() {
            let tally = &sample.tally;
            let us = |share| tally.latency.quantile(share).as_secs_f64() * 1e6;
            let _ = writeln!(
                text,
                "{}\t{kind}\t{round}\t{}\t{:.3}\t{:.6}\t{:.2}\t{:.2}\t{:.1}\t{:.1}\t{:.1}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.2}",
                figures.scenario.name,
                tally.answered,
                tally.elapsed.as_secs_f64(),
                sample.cpu.all,
                sample.cpu.user,
                sample.cpu.kernel,
                us(0.5),
                us(0.99),
                us(0.999),
                tally.lost,
                tally.unsent,
                tally.late,
                tally.wrong,
                tally.truncated,
                tally.closed,
                sample.memory.pss,
                sample.memory.rss,
                sample.others
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let mut table = Table::new(&["server", "µs"]);
        table.row(vec!["namesake".into(), "2.07".into()]);
        assert_eq!(table.render(), "| server   |   µs |\n|----------|-----:|\n| namesake | 2.07 |\n");
    }
}
