//! Commands in the pod that asks, and what is read from what they print.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::clusterset::Place;
use crate::objects::REQUEST;

/// How long one command may take. The suite gives it 4 s, in which a busy machine may not get it done.
const COMMAND: Duration = Duration::from_secs(20);

/// How long the suite looks for one passing answer, and how often.
pub const PATIENCE: Duration = Duration::from_secs(20);
const EACH: Duration = Duration::from_secs(1);

/// What came of a command.
pub struct Answer {
    /// Whether it ran, and ended with success.
    pub ok: bool,
    /// What it printed, or why it did not run.
    pub printed: Result<String, String>,
}

impl Answer {
    /// What the suite looks at: nothing where the command did not run or did not succeed.
    pub fn text(&self) -> &str {
        self.printed.as_deref().ok().filter(|_| self.ok).unwrap_or_default()
    }

    /// For people.
    pub fn seen(&self) -> &str {
        self.printed.as_ref().unwrap_or_else(|why| why)
    }
}

impl Place {
    /// Runs a command of the shell in the pod that asks.
    pub async fn ask(&self, command: &str) -> Answer {
        let words = ["sh", "-c", command];
        match self.cluster.exec(&self.namespace, REQUEST, None, &words, COMMAND).await {
            Ok(output) => Answer { ok: output.ok, printed: Ok(output.stdout + &output.stderr) },
            Err(e) => Answer { ok: false, printed: Err(e.to_string()) },
        }
    }

    /// Waits until what a command prints passes so often in a row, once a second.
    pub async fn until_passes<T>(
        &self,
        times: u32,
        command: &str,
        what: &str,
        look: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        let end = Instant::now() + PATIENCE * times;
        let mut in_a_row = 0;
        loop {
            let began = Instant::now();
            let answer = self.ask(command).await;
            match look(answer.text()) {
                Ok(found) => {
                    in_a_row += 1;
                    if in_a_row == times {
                        return found;
                    }
                }
                Err(why) => {
                    in_a_row = 0;
                    let (id, seen) = (self.id(), answer.seen());
                    let within = PATIENCE * times;
                    assert!(
                        began < end,
                        "not within {within:?}: {id}: {what}; instead: {why}; `{command}` printed: {seen}"
                    );
                }
            }
            tokio::time::sleep(EACH).await;
        }
    }

    /// Waits until a look-up has exactly these addresses.
    pub async fn until_resolves(&self, name: &str, family: &str, addresses: &[String]) {
        let wanted: BTreeSet<&str> = addresses.iter().map(String::as_str).collect();
        self.until_passes(1, &nslookup(record_type(family), name), &format!("{name} is {addresses:?}"), |text| {
            let found = addresses_in(text);
            // A record twice is one too many.
            let is = found.len() == wanted.len() && found.iter().copied().collect::<BTreeSet<_>>() == wanted;
            if is { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// Waits until a look-up has so many SRV records.
    pub async fn until_srv(&self, name: &str, count: usize) -> Vec<Srv> {
        self.until_passes(1, &nslookup("SRV", name), &format!("{name} has {count} SRV records"), |text| {
            let found = srv_in(text);
            if found.len() == count { Ok(found) } else { Err(format!("{found:?}")) }
        })
        .await
    }
}

/// The type of the records that hold addresses of this family.
pub fn record_type(family: &str) -> &'static str {
    if family == "IPv6" { "AAAA" } else { "A" }
}

/// Looks a name up; the dot at its end keeps the search list out of it.
pub fn nslookup(kind: &str, name: &str) -> String {
    format!("nslookup -type={kind} {name}.")
}

/// Connects to a port of a name and prints what comes. For IPv6 the address is looked up first, as the suite does it; it
/// found that its `nc` hangs otherwise.
pub fn connect(family: &str, name: &str, port: u16) -> String {
    let say = "echo hi | nc -v -w 2";
    if family == "IPv6" {
        let find = format!("{} | sed -n 's/^Address: *\\([0-9a-f:]*\\)$/\\1/p' | tail -n 1", nslookup("AAAA", name));
        format!("to=$({find}); [ -n \"$to\" ] || {{ echo {name} has no address; exit 1; }}; {say} $to {port} 2>&1")
    } else {
        format!("{say} -4 {name} {port} 2>&1")
    }
}

/// One record of `nslookup -type=SRV`.
#[derive(Debug, PartialEq, Eq)]
pub struct Srv {
    pub port: u16,
    /// Without the dot at its end.
    pub target: String,
}

/// The addresses that `nslookup` found, which stand behind a line with the name; the server's does not.
fn addresses_in(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].starts_with("Name:"));
    pairs.filter_map(|pair| pair[1].strip_prefix("Address:")).map(str::trim).collect()
}

/// The records of lines such as `NAME service = 0 50 42 TARGET.`
fn srv_in(text: &str) -> Vec<Srv> {
    let read = |line: &str| {
        let words: Vec<&str> = line.split_once("service =")?.1.split_whitespace().collect();
        let [_priority, _weight, port, target] = words[..] else { return None };
        Some(Srv { port: port.parse().ok()?, target: target.trim_end_matches('.').to_owned() })
    };
    text.lines().filter_map(read).collect()
}

/// What is read from `nslookup` and what is not. Tried before any bed is made, since everything that looks up stands on it.
pub fn check_the_reading() {
    let text = "Server:\t\t10.101.0.10\r\nAddress:\t10.101.0.10#53\r\n\r\n\
                Name:\thello.x.svc.clusterset.local\r\nAddress: 10.201.0.7\r\n\
                Name:\thello.x.svc.clusterset.local\r\nAddress: fd00:201::7\r\n";
    assert_eq!(addresses_in(text), ["10.201.0.7", "fd00:201::7"]);
    let text = "hello.x\tservice = 0 50 42 a.hello.x.\n\nName:\ta.hello.x\nservice = what\n";
    assert_eq!(srv_in(text), [Srv { port: 42, target: "a.hello.x".into() }]);
}
