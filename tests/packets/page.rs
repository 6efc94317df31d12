//! The report as one page for people: nothing is loaded, nothing runs in it, and it is read on a phone as well.

use std::fmt::Write;

use testbed::Arrangement;

use crate::grid::{Family, columns};
use crate::report::{OfScenario, Report};

const STYLE: &str = "\
:root { color-scheme: light dark; --ok: #18794e; --bad: #c62a2f; --dim: #6f6f6f; --line: #d7d7d7; }
@media (prefers-color-scheme: dark) { :root { --ok: #4cc38a; --bad: #ff6369; --dim: #a0a0a0; --line: #444; } }
body { font: 16px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 68rem; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; }
.sum { font-size: 1.1rem; font-weight: 600; margin: .3rem 0; }
.ok { color: var(--ok); } .bad { color: var(--bad); } .dim { color: var(--dim); font-size: .85rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .3rem; text-align: center; vertical-align: top; }
th { font-size: .8rem; font-weight: 600; } thead tr:first-child th { border-bottom: 0; }
th:first-child, td:first-child { text-align: left; }
.group { border-left: 1px solid var(--line); }
td a { color: inherit; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; }
@media (max-width: 40rem) {
  body { padding: .6rem; font-size: 14px; }
  thead tr:nth-child(2) th { writing-mode: vertical-rl; padding: .3rem 0; }
  .time { display: none; }
}
";

/// The page.
pub fn of(report: &Report) -> String {
    let mut page = String::new();
    let (class, sum) = sum(report);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Namesake: conformance, {passed} passed, {failed} failed</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Namesake and the Multi-Cluster Services API</h1>\n<p class=\"sum {class}\">{sum}</p>\n\
         <p class=\"dim\">{about}. On clusters with real kubelets, containers and kube-proxies; the clusters' CoreDNS forwards to \
         Namesake (forward), reads the objects of its controller itself (plugin), or is asked through a cache (nodelocal). \
         {seconds:.0} s with the start of the clusters.</p>\n",
        passed = report.passed,
        failed = report.failed,
        about = escaped(report.about),
        seconds = report.seconds,
    );
    page.push_str(&table(report));
    page.push_str(&failures(report));
    page.push_str(&facts(report));
    page.push_str("</body>\n</html>\n");
    page
}

fn sum(report: &Report) -> (&'static str, String) {
    let (passed, failed, all) = (report.passed, report.failed, report.passed + report.failed);
    let scenarios = report.scenarios.len();
    let part = if report.complete { "" } else { " A part only: a filter was given." };
    match failed {
        0 if passed > 0 => ("ok", format!("{scenarios} scenarios, {all} runs: all passed.{part}")),
        _ => ("bad", format!("{scenarios} scenarios, {all} runs: {failed} failed.{part}")),
    }
}

fn table(report: &Report) -> String {
    let mut text = String::from("<table>\n<thead>\n<tr><th></th>");
    for family in Family::ALL {
        let _ = write!(text, "<th class=\"group\" colspan=\"{}\">{}</th>", Arrangement::ALL.len(), family.name());
    }
    text.push_str("</tr>\n<tr><th>Scenario</th>");
    for (i, column) in columns().enumerate() {
        let _ = write!(text, "<th{}>{}</th>", group(i), column.arrangement.name());
    }
    text.push_str("</tr>\n</thead>\n<tbody>\n");
    for scenario in &report.scenarios {
        let _ = write!(
            text,
            "<tr><td><b>{}</b> {}<br><span class=\"dim\">{} · <a href=\"{}\">{}</a></span></td>",
            scenario.id,
            escaped(&scenario.title),
            escaped(&scenario.labels.join(", ")),
            escaped(&scenario.kep_1645.url),
            escaped(scenario.kep_1645.title),
        );
        for (i, column) in columns().enumerate() {
            let _ = match scenario.in_column(column) {
                None => write!(text, "<td{}><span class=\"dim\" title=\"not played here\">–</span></td>", group(i)),
                Some(run) if run.passed() => write!(
                    text,
                    "<td{}><b class=\"ok\">✓</b><br><span class=\"dim time\">{:.1} s</span></td>",
                    group(i),
                    run.seconds
                ),
                Some(_) => {
                    let (group, to) = (group(i), place(scenario, column.family.name(), column.arrangement.name()));
                    write!(text, "<td{group}><a href=\"#{to}\"><b class=\"bad\">✗</b></a></td>")
                }
            };
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n");
    text
}

/// The first column of a family has a line on its left.
fn group(column: usize) -> &'static str {
    if column.is_multiple_of(Arrangement::ALL.len()) { " class=\"group\"" } else { "" }
}

fn place(scenario: &OfScenario, family: &str, arrangement: &str) -> String {
    format!("{}-{family}-{arrangement}", scenario.id)
}

fn failures(report: &Report) -> String {
    let mut text = String::new();
    for scenario in &report.scenarios {
        for run in &scenario.runs {
            let Some(error) = &run.error else { continue };
            let _ = write!(
                text,
                "<details id=\"{}\"><summary class=\"bad\"><b>{}</b> {} / {} after {:.1} s</summary>\n<pre>{}</pre></details>\n",
                place(scenario, run.family, run.arrangement),
                scenario.id,
                run.family,
                run.arrangement,
                run.seconds,
                escaped(error),
            );
        }
    }
    if text.is_empty() { text } else { format!("<h2>What failed</h2>\n{text}") }
}

fn facts(report: &Report) -> String {
    let mut lines = vec![format!("{}", report.date)];
    let commit = report.namesake.commit.as_ref().map_or_else(String::new, |commit| format!(" at {commit}"));
    lines.push(format!("Namesake {}{commit}", report.namesake.version));
    lines.extend(report.coredns.as_ref().map(|version| format!("CoreDNS {version}")));
    for bed in &report.beds {
        for cluster in &bed.clusters {
            lines.push(format!(
                "{} {}: Kubernetes {}, kubelet {}, {}, Linux {}",
                bed.family, cluster.name, cluster.kubernetes, cluster.kubelet, cluster.containers, cluster.kernel
            ));
        }
    }
    let lines: Vec<_> = lines.iter().map(|line| escaped(line)).collect();
    format!("<p class=\"dim\">{}</p>\n", lines.join("<br>\n"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
