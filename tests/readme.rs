//! The README is true: its console blocks are run again, its tables are those of the program, its links lead somewhere.
//!
//! Where it has drifted, the README as it should be is written beside the build's output, and the message says where.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

mod clusters;
mod product;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clusters::Folder;

use namesake::config::{Keyed, Shape, Spec, controller, dns};
use namesake::metrics::{CONTROLLER_TABLE, Metric, TABLE};
use product::{Namesake, PATIENCE, binary, root};
use testbed::Bed;

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// Fails where `new` is not the README, and leaves it where a person can take it from.
fn must_be(part: &str, new: &str) {
    if new != readme() {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("README.{part}.md"));
        std::fs::write(&file, new).unwrap();
        let first =
            readme().lines().zip(new.lines()).find(|(old, new)| old != new).map(|(old, new)| format!("{old}\n{new}"));
        panic!(
            "README.md has drifted, first here:\n{}\nIf that is meant: cp {} README.md",
            first.unwrap_or_default(),
            file.display()
        );
    }
}

/// The README with other text between `<!-- name -->` and `<!-- /name -->`.
fn with_part(name: &str, part: &str) -> String {
    let readme = readme();
    let (before, rest) = readme.split_once(&format!("<!-- {name} -->\n")).unwrap_or_else(|| panic!("no {name}"));
    let (_, after) = rest.split_once(&format!("<!-- /{name} -->\n")).unwrap_or_else(|| panic!("no end of {name}"));
    format!("{before}<!-- {name} -->\n{part}<!-- /{name} -->\n{after}")
}

/// The tables of a command's options.
fn options<K: Keyed>() -> String {
    let mut part = String::new();
    for section in K::SECTIONS {
        part.push_str(&format!("\n**{}**\n\n| Flag | Default | |\n|---|---|---|\n", section.title()));
        for spec in K::TABLE.iter().filter(|spec| spec.section == *section) {
            let value = if spec.shape == Shape::Switch { String::new() } else { format!(" {}", spec.value) };
            let flag = format!("`{}{value}`", spec.flag()).replace('|', "\\|");
            let default = match (spec.shape, spec.default) {
                (Shape::Switch, _) => "off".to_owned(),
                (_, "") => String::new(),
                (_, default) => format!("`{default}`"),
            };
            let again = if spec.shape == Shape::Many { ". Repeatable" } else { "" };
            let help = spec.help.replace('<', "&lt;").replace('|', "\\|");
            part.push_str(&format!("| {flag} | {default} | {help}{again} |\n"));
        }
    }
    part.push('\n');
    part
}

#[test]
fn the_options_are_those_of_the_program() {
    must_be("options", &with_part("options", &options::<dns::Key>()));
}

#[test]
fn the_options_of_the_controller_are_those_of_the_program() {
    must_be("controller-options", &with_part("controller-options", &options::<controller::Key>()));
}

#[test]
fn the_metrics_are_those_of_the_program() {
    let ours = |name: &str| name.starts_with("namesake_");
    let (own, rest): (Vec<&Metric>, Vec<&Metric>) = TABLE.iter().partition(|metric| ours(metric.name));
    must_be("metrics", &with_part("metrics", &metrics(own.into_iter().chain(rest))));
    must_be("controller", &with_part("controller metrics", &metrics(CONTROLLER_TABLE)));
}

fn metrics<'a>(table: impl IntoIterator<Item = &'a Metric>) -> String {
    let mut part = String::from("\n| Metric | Labels | |\n|---|---|---|\n");
    for metric in table {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let help = metric.help.replace('<', "&lt;").replace('|', "\\|");
        part.push_str(&format!("| `{}` | {} | {help} |\n", metric.name, labels.join(" ")));
    }
    part.push('\n');
    part
}

#[test]
fn what_the_readme_names_is_there() {
    let readme = readme();
    let mut named = BTreeSet::new();
    for (at, _) in readme.match_indices("](") {
        let target = readme[at + 2..].split([')', ' ']).next().unwrap();
        if !target.contains("://") && !target.starts_with('#') {
            named.insert(target.to_owned());
        }
    }
    let anchor =
        |heading: &str| heading.trim_start_matches(['#', ' ']).to_lowercase().replace(',', "").replace(' ', "-");
    let headings: BTreeSet<_> = readme.lines().filter(|line| line.starts_with("##")).map(anchor).collect();
    for (at, _) in readme.match_indices("](#") {
        let target = readme[at + 3..].split(')').next().unwrap();
        assert!(headings.contains(target), "#{target} is no heading");
    }
    for line in readme.lines() {
        named.extend(line.split([' ', '`', '(', ')']).filter(|word| word.starts_with("deploy/")).map(str::to_owned));
    }
    assert!(named.len() > 10, "{named:?}");
    for path in named {
        assert!(root().join(&path).exists(), "{path} is not there");
    }
    let flags: BTreeSet<_> =
        dns::Key::TABLE.iter().map(Spec::flag).chain(controller::Key::TABLE.iter().map(Spec::flag)).collect();
    for word in readme.split([' ', '`', '=', '\n', '|', ',', '.', ':', ';', '(', ')', '{']) {
        if let Some(flag) = word.strip_prefix("--").filter(|flag| flag.starts_with(|c: char| c.is_ascii_lowercase())) {
            let known = flags.contains(word);
            let of_others = [
                "release",
                "server",
                "config",
                "corefile",
                "rm",
                "restart",
                "image",
                "view",
                "without",
                "cluster",
                "fail-on-conflict",
                "id",
                "member-only",
                "read-only",
                "grant",
                "timeout",
                "controller-config",
                "replicas",
                "raw",
                "server-side",
                "packets",
                "no-packets",
                "clusters",
                "dual-stack",
                "path",
                "name",
                "network",
                "k3s-arg",
                "test",
            ];
            assert!(known || of_others.contains(&flag), "--{flag} is no flag");
        }
        if word.starts_with("namesake_") || word.starts_with("coredns_") {
            assert!(
                word.ends_with('_') || TABLE.iter().chain(CONTROLLER_TABLE).any(|metric| metric.name == word),
                "{word} is no metric"
            );
        }
    }
}

#[test]
fn rsv_04_a_host_whose_local_names_go_to_multicast_dns_is_told_what_to_do() {
    let readme = readme();
    let row = readme.lines().find(|line| line.contains("`.local` belongs to multicast DNS")).expect("a row on .local");
    for words in ["Domains=~clusterset.local", "resolvectl domain", "mdns4_minimal", "the query never came"] {
        assert!(row.contains(words), "{words}");
    }
}

/// Every console block: its commands are run, and what they print is what stands there. What differs from run to run
/// (ids, serials, ages, the order of records) may differ.
#[tokio::test]
async fn every_console_block_prints_what_stands_there() {
    let bed = Bed::new().unwrap();
    let server = Namesake::with_example(&bed).await.unwrap();
    let mut out = String::new();
    let mut lines = readme().lines().map(str::to_owned).collect::<Vec<_>>().into_iter();
    let mut commands = 0;
    let mut sandbox: Option<Sandbox> = None;
    while let Some(line) = lines.next() {
        out.push_str(&format!("{line}\n"));
        if line.starts_with("## ") && line != "## Sandbox" {
            sandbox.take().iter().for_each(Sandbox::end);
        }
        // Real clusters.
        if line == "<!-- shown by tests/install/first.rs -->" {
            for line in lines.by_ref() {
                out.push_str(&format!("{line}\n"));
                if line == "<!-- /shown by tests/install/first.rs -->" {
                    break;
                }
            }
            continue;
        }
        if let Some(sandbox) = sandbox.as_mut().filter(|_| line == "```text") {
            let printed: Vec<String> = lines.by_ref().take_while(|line| line != "```").collect();
            let now = sandbox.next(printed.len()).await;
            now.iter().for_each(|line| out.push_str(&format!("{line}\n")));
            out.push_str("```\n");
            commands += usize::from(now == printed);
            continue;
        }
        if line != "```console" {
            continue;
        }
        let block: Vec<String> = lines.by_ref().take_while(|line| line != "```").collect();
        let starts = block.iter().enumerate().filter(|(_, line)| line.starts_with("$ ")).map(|(at, _)| at);
        let starts: Vec<_> = starts.collect();
        assert_eq!(starts.first(), Some(&0), "a console block begins with a command: {block:?}");
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(block.len());
            let (command, printed) = (&block[start], &block[start + 1..end]);
            let command_line = command.trim_start_matches("$ ");
            let now = if command_line == "cargo run --release -- sandbox config/sandbox" {
                let mut started = Sandbox::start(&bed).await;
                let now = started.next(printed.len()).await;
                sandbox = Some(started);
                now
            } else if let Some(sandbox) = &sandbox {
                run(&sandbox.server, &sandbox.here(command_line))
            } else {
                run(&server, command_line)
            };
            let kept = if same(printed, &now) { printed } else { &now };
            out.push_str(&format!("{command}\n"));
            kept.iter().for_each(|line| out.push_str(&format!("{line}\n")));
            commands += 1;
        }
        out.push_str("```\n");
    }
    sandbox.iter().for_each(Sandbox::end);
    assert!(commands >= 10, "{commands} commands");
    must_be("console", &out);
}

/// The sandbox of the README, on a copy of its folder: the README's commands edit it.
struct Sandbox {
    server: Namesake,
    folder: Folder,
    /// How many of its lines were taken.
    seen: usize,
}

impl Sandbox {
    async fn start(bed: &Bed) -> Self {
        let folder = Folder::example();
        let server = Namesake::sandbox(bed, folder.path(), &[]).await.unwrap();
        Self { server, folder, seen: 0 }
    }

    /// A command of the README, on the copy.
    fn here(&self, command: &str) -> String {
        command.replace("config/sandbox", &self.folder.path().to_string_lossy())
    }

    /// What it has printed and nobody has taken.
    fn rest(&self) -> Vec<String> {
        let log = self.server.process.log().unwrap().replace(&*self.folder.path().to_string_lossy(), "config/sandbox");
        let mut lines = printed(&self.server, &log);
        lines.split_off(self.seen.min(lines.len()))
    }

    /// What it prints next, as soon as that is as many lines as the README has there, or when it has had its time. Lines
    /// that come later are too many where the next ones are looked for, or at the end.
    async fn next(&mut self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        while self.rest().len() < count && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let lines = self.rest();
        self.seen += lines.len();
        lines
    }

    /// At its end nothing is left that the README does not show.
    fn end(&self) {
        assert_eq!(self.rest(), [""; 0], "printed by the sandbox, and not in the README");
    }
}

/// What a command of the README prints, with our server in the place of the README's.
fn run(server: &Namesake, command: &str) -> Vec<String> {
    let here = [(server.dns.port().to_string(), "1053"), (server.admin.port().to_string(), "8053")];
    let out = if command == "namesake dns --from config/example --listen 127.0.0.1:1053" {
        // The server that runs already: it was started by these arguments.
        server.process.log().unwrap()
    } else {
        let command = here.iter().fold(command.to_owned(), |command, (port, theirs)| command.replace(theirs, port));
        let path = std::env::var("PATH").unwrap_or_default();
        let out = Command::new("sh")
            .args(["-c", &command])
            .env("PATH", format!("{}:{path}", binary().parent().unwrap().display()))
            .current_dir(root())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && errors.is_empty(), "{command}: {} {errors}", out.status);
        String::from_utf8(out.stdout).unwrap()
    };
    printed(server, &out)
}

/// Lines with the README's ports, without what only tests bring about.
fn printed(server: &Namesake, out: &str) -> Vec<String> {
    let here = [(server.dns.port().to_string(), "1053"), (server.admin.port().to_string(), "8053")];
    let out = here.iter().fold(out.to_owned(), |out, (port, theirs)| out.replace(port, theirs));
    // The bed's mark in the environment, and our own asking for /ready too early.
    let ours = |line: &&str| !line.contains("NAMESAKE_TESTBED") && !line.contains("Plugins not ready");
    let mut lines: Vec<String> = out.lines().filter(ours).map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn same(old: &[String], new: &[String]) -> bool {
    let plain = |lines: &[String]| {
        let mut lines: Vec<_> = lines.iter().map(|line| steady(line)).collect();
        // Records come in any order, as long as they stay together.
        let record = |line: &String| line.contains(" IN ") && !line.starts_with(';');
        let mut at = 0;
        while at < lines.len() {
            let run = lines[at..].iter().take_while(|line| record(line)).count();
            lines[at..at + run].sort();
            at += run.max(1);
        }
        lines
    };
    plain(old) == plain(new)
}

/// A line without what differs from run to run: spaces, message ids, serials, ages.
fn steady(line: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let number = word.trim_end_matches(',').parse::<u64>().is_ok();
        let id = number && out.last().is_some_and(|last| last == "id:");
        let serial = number && word.len() == 10;
        let age = number && words.peek() == Some(&"s") && out.last().is_some_and(|last| last == "event");
        out.push(if id || serial || age { "N".to_owned() } else { word.to_owned() });
    }
    out.join(" ")
}

#[test]
fn what_may_differ_is_only_what_differs_from_run_to_run() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let same = |a: &str, b: &str| same(&lines(a), &lines(b));
    assert!(same("a. 5\tIN\tA\t10.0.0.1\na. 5 IN A 10.0.0.2", "a. 5 IN A 10.0.0.2\na. 5 IN A 10.0.0.1"));
    assert!(same(";; ->>HEADER<<- status: NXDOMAIN, id: 1", ";; ->>HEADER<<- status: NXDOMAIN, id: 65535"));
    assert!(same("z. 5 IN SOA ns.z. h.z. 1795984492 7200", "z. 5 IN SOA ns.z. h.z. 1795984499 7200"));
    assert!(!same("a. 5 IN A 10.0.0.1", "a. 6 IN A 10.0.0.1"));
    assert!(!same("a. 5 IN A 10.0.0.1", "a. 5 IN A 10.0.0.1\na. 5 IN A 10.0.0.2"));
    assert!(!same("status: NXDOMAIN, id: 1", "status: NOERROR, id: 1"));
    assert!(!same("x\na. 5 IN A 10.0.0.1", "a. 5 IN A 10.0.0.1\nx"));
}
