//! The real `dig`, its answer taken apart.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::error::{Doing, Error, Result};

/// What `dig` saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dig {
    /// `NOERROR`, `NXDOMAIN`, `SERVFAIL`, `REFUSED` …
    pub status: String,
    /// `QUERY`, `NOTIFY` …
    pub opcode: String,
    /// `qr`, `aa`, `tc`, `rd`, `ra`, `ad`, `cd`, in the order that `dig` prints.
    pub flags: Vec<String>,
    /// The counts of the header.
    pub counts: Counts,
    /// The OPT record, if there is one.
    pub edns: Option<Edns>,
    /// The question: name, class, type.
    pub question: Vec<String>,
    /// The records of the answer section.
    pub answer: Vec<Record>,
    /// The records of the authority section.
    pub authority: Vec<Record>,
    /// The records of the additional section, without OPT.
    pub additional: Vec<Record>,
    /// The size of the reply in bytes.
    pub size: usize,
    /// Whether the reply came over TCP, asked for or because the one over UDP was truncated.
    pub tcp: bool,
    /// All that `dig` printed.
    pub text: String,
}

/// The counts of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// QDCOUNT.
    pub question: usize,
    /// ANCOUNT.
    pub answer: usize,
    /// NSCOUNT.
    pub authority: usize,
    /// ARCOUNT, with OPT.
    pub additional: usize,
}

/// What an OPT record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edns {
    /// Version, 0.
    pub version: u8,
    /// `do` or nothing.
    pub flags: Vec<String>,
    /// The UDP payload size of the server.
    pub udp: u16,
    /// Extended DNS errors: code and extra text.
    pub errors: Vec<(u16, String)>,
    /// Other options, as `dig` prints them.
    pub options: Vec<String>,
}

/// One resource record.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// The owner, with its final dot.
    pub name: String,
    /// Time to live in seconds.
    pub ttl: u32,
    /// `IN`.
    pub class: String,
    /// `A`, `AAAA`, `SRV`, `SOA` …
    pub kind: String,
    /// The data, fields separated by one space.
    pub data: String,
}

impl Dig {
    /// Whether the reply has this flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// The data of the answers of one type, sorted.
    pub fn data(&self, kind: &str) -> Vec<&str> {
        let mut data: Vec<_> = self.answer.iter().filter(|r| r.kind == kind).map(|r| r.data.as_str()).collect();
        data.sort_unstable();
        data
    }
}

/// Asks a server with the real `dig`, one try of 20 seconds, a loaded machine's patience, unless `args` say otherwise:
/// `dig(server, &["+noedns", "web.demo.svc.clusterset.local", "A"])`. Blocks for as long as `dig` runs.
///
/// No reply, or one that `dig` cannot read, is an error with all that `dig` printed.
pub fn dig(server: SocketAddr, args: &[&str]) -> Result<Dig> {
    let out = Command::new("dig")
        .arg(format!("@{}", server.ip()))
        .args(["-p", &server.port().to_string(), "+time=20", "+tries=1"])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .doing("running dig (package bind9-dnsutils)")?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        return Err(Error::new(format!("dig @{server} {}: {}\n{text}{errors}", args.join(" "), out.status)));
    }
    parse(text).map_err(|e| Error::new(format!("dig @{server} {}: {e}", args.join(" "))))
}

fn parse(text: String) -> Result<Dig> {
    let mut dig = Dig::default();
    let mut section = "";
    for line in text.lines() {
        if let Some(header) = line.strip_prefix(";; ->>HEADER<<- ") {
            // A truncated reply may be printed before the one over TCP: the last one counts.
            dig = Dig::default();
            for field in header.split(", ") {
                match field.split_once(": ") {
                    Some(("opcode", value)) => dig.opcode = value.to_owned(),
                    Some(("status", value)) => dig.status = value.to_owned(),
                    _ => {}
                }
            }
        } else if let Some(rest) = line.strip_prefix(";; flags:") {
            let (flags, counts) = rest.split_once(';').unwrap_or((rest, ""));
            dig.flags = flags.split_whitespace().map(str::to_owned).collect();
            for count in counts.split(',') {
                let (name, value) = count.split_once(':').unwrap_or((count, ""));
                let value = value.trim().parse().unwrap_or(0);
                match name.trim() {
                    "QUERY" | "ZONE" => dig.counts.question = value,
                    "ANSWER" | "PREREQ" => dig.counts.answer = value,
                    "AUTHORITY" | "UPDATE" => dig.counts.authority = value,
                    "ADDITIONAL" => dig.counts.additional = value,
                    _ => {}
                }
            }
        } else if let Some(name) = line.strip_prefix(";; ").and_then(|l| l.strip_suffix(" SECTION:")) {
            section = match name {
                "ANSWER" => "answer",
                "AUTHORITY" => "authority",
                "ADDITIONAL" => "additional",
                "QUESTION" => "question",
                _ => "",
            };
        } else if line.starts_with(";; OPT PSEUDOSECTION:") {
            section = "opt";
            dig.edns = Some(Edns::default());
        } else if let Some(rest) = line.strip_prefix(";; SERVER: ") {
            dig.tcp = rest.ends_with("(TCP)");
        } else if let Some(size) = line.strip_prefix(";; MSG SIZE  rcvd: ") {
            dig.size = size.trim().parse().unwrap_or(0);
        } else if let Some(line) = line.strip_prefix("; ").filter(|_| section == "opt") {
            if let Some(edns) = &mut dig.edns {
                opt_line(edns, line);
            }
        } else if let Some(question) = line.strip_prefix(';').filter(|l| section == "question" && !l.starts_with(';')) {
            dig.question = question.split_whitespace().map(str::to_owned).collect();
        } else if !line.is_empty() && !line.starts_with(';') {
            let records = match section {
                "answer" => &mut dig.answer,
                "authority" => &mut dig.authority,
                "additional" => &mut dig.additional,
                _ => continue,
            };
            records.push(record(line)?);
        }
    }
    if dig.status.is_empty() {
        return Err(Error::new(format!("no reply in its output:\n{text}")));
    }
    dig.text = text;
    Ok(dig)
}

fn opt_line(edns: &mut Edns, line: &str) {
    if let Some(rest) = line.strip_prefix("EDNS: ") {
        // EDNS: version: 0, flags: do; udp: 1232
        for part in rest.split([',', ';']) {
            match part.trim().split_once(':') {
                Some(("version", value)) => edns.version = value.trim().parse().unwrap_or(u8::MAX),
                Some(("flags", value)) => edns.flags = value.split_whitespace().map(str::to_owned).collect(),
                Some(("udp", value)) => edns.udp = value.trim().parse().unwrap_or(0),
                _ => {}
            }
        }
    } else if let Some(rest) = line.strip_prefix("EDE: ") {
        // EDE: 14 (Not Ready): (text)
        let (code, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let extra = after.split_once("): (").and_then(|(_, extra)| extra.strip_suffix(')')).unwrap_or("");
        edns.errors.push((code.trim_end_matches(':').parse().unwrap_or(u16::MAX), extra.to_owned()));
    } else {
        edns.options.push(line.to_owned());
    }
}

fn record(line: &str) -> Result<Record> {
    let mut fields = line.split_whitespace().map(str::to_owned);
    let (Some(name), Some(ttl), Some(class), Some(kind)) = (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(Error::new(format!("not a record: {line:?}")));
    };
    let ttl = ttl.parse().doing(format!("the TTL of {line:?}"))?;
    Ok(Record { name, ttl, class, kind, data: fields.collect::<Vec<_>>().join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_taken_apart() {
        let text = "
; <<>> DiG 9.18.41 <<>> @127.0.0.1 -p 1053 x.clusterset.local SRV
;; Got answer:
;; ->>HEADER<<- opcode: QUERY, status: NXDOMAIN, id: 2718
;; flags: qr aa rd; QUERY: 1, ANSWER: 1, AUTHORITY: 1, ADDITIONAL: 2
;; WARNING: recursion requested but not available

;; OPT PSEUDOSECTION:
; EDNS: version: 0, flags: do; udp: 1232
; COOKIE: 0123456789abcdef (echoed)
; EDE: 3 (Stale Answer): (42s old)
; EDE: 14 (Not Ready)
;; QUESTION SECTION:
;x.clusterset.local.\t\tIN\tSRV

;; ANSWER SECTION:
x.clusterset.local.\t5\tIN\tSRV\t0 50 80 y.clusterset.local.

;; AUTHORITY SECTION:
clusterset.local.\t5\tIN\tSOA\tns.dns.clusterset.local. hostmaster.clusterset.local. 1 7200 1800 86400 5

;; ADDITIONAL SECTION:
y.clusterset.local.\t5\tIN\tA\t10.0.0.1

;; Query time: 0 msec
;; SERVER: 127.0.0.1#1053(127.0.0.1) (TCP)
;; WHEN: Sun Nov 29 20:00:00 UTC 2026
;; MSG SIZE  rcvd: 161
";
        let dig = parse(text.to_owned()).unwrap();
        assert_eq!((dig.status.as_str(), dig.opcode.as_str()), ("NXDOMAIN", "QUERY"));
        assert_eq!(dig.flags, ["qr", "aa", "rd"]);
        assert_eq!(dig.counts, Counts { question: 1, answer: 1, authority: 1, additional: 2 });
        let edns = dig.edns.clone().unwrap();
        assert_eq!((edns.version, edns.udp, edns.flags.as_slice()), (0, 1232, &["do".to_owned()][..]));
        assert_eq!(edns.errors, [(3, "42s old".to_owned()), (14, String::new())]);
        assert_eq!(edns.options, ["COOKIE: 0123456789abcdef (echoed)"]);
        assert_eq!(dig.question, ["x.clusterset.local.", "IN", "SRV"]);
        assert_eq!(dig.data("SRV"), ["0 50 80 y.clusterset.local."]);
        assert_eq!(dig.answer[0].ttl, 5);
        assert_eq!(dig.authority[0].kind, "SOA");
        assert_eq!(dig.additional, [record("y.clusterset.local. 5 IN A 10.0.0.1").unwrap()]);
        assert_eq!((dig.size, dig.tcp), (161, true));
    }

    #[test]
    fn output_without_a_reply_is_an_error() {
        assert!(parse(";; communications error to 127.0.0.1#1: timed out\n".to_owned()).is_err());
    }
}
