//! How each server is set up: with one worker, and without what would keep it from answering (rate limits) or make its
//! answers longer (additional records, where that can be said).

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::Bed;

use crate::cluster::{Result, doing};
use crate::servers::{Kind, Place};
use crate::set::ZONE;
use crate::zone;

/// A port that nobody has.
pub(crate) fn free(bed: &Bed) -> Result<u16> {
    bed.port().map_err(doing("a port"))
}

/// The zone file of a set, written once in a bed.
fn zone_file(place: &Place<'_>) -> Result<PathBuf> {
    let path = place.bed.dir().join(format!("zone-{}", place.set));
    if !path.exists() {
        let mut out = BufWriter::new(fs::File::create(&path).map_err(doing("the zone file"))?);
        zone::write(place.set, &mut out).map_err(doing("the zone file"))?;
    }
    Ok(path)
}

/// The program and its arguments, which answers at `port` over IPv4 and IPv6.
pub(crate) fn command(kind: Kind, place: &Place<'_>, port: u16, admin: u16) -> Result<(PathBuf, Vec<String>)> {
    let bed = place.bed;
    let dir = bed.dir().join(format!("{kind}-{port}"));
    fs::create_dir_all(&dir).map_err(doing(dir.display()))?;
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(doing(path.display()))?;
        Ok::<_, String>(path.display().to_string())
    };
    let here = dir.display();
    let kubeconfig = || place.kubeconfig.as_ref().map(|path| path.display()).ok_or("no API server holds the set");
    let zone = || zone_file(place).map(|path| path.display().to_string());
    let (program, args): (PathBuf, Vec<String>) = match kind {
        Kind::Echo => {
            let own = std::env::current_exe().map_err(doing("finding this program"))?;
            (own, vec!["echo".into(), format!("127.0.0.1:{port}"), format!("[::1]:{port}")])
        }
        Kind::Hickory => {
            let own = std::env::current_exe().map_err(doing("finding this program"))?;
            let set = format!("--set={}", place.set);
            (own, vec!["hickory".into(), set, format!("127.0.0.1:{port}"), format!("[::1]:{port}")])
        }
        Kind::Namesake | Kind::NamesakeAny | Kind::NamesakeLog => {
            let mut args = vec!["dns".into(), format!("--kubeconfig={}", kubeconfig()?)];
            args.push(format!("--admin=127.0.0.1:{admin}"));
            if kind == Kind::NamesakeAny {
                args.push(format!("--listen=:{port}"));
            } else {
                args.extend([format!("--listen=127.0.0.1:{port}"), format!("--listen=[::1]:{port}")]);
            }
            if kind == Kind::NamesakeLog {
                args.push("--query-log".into());
            }
            (place.namesake.to_owned(), args)
        }
        Kind::Nsd => {
            let text = format!(
                "server:\n  server-count: 1\n  ip-address: 127.0.0.1@{port}\n  ip-address: ::1@{port}\n  username: \"\"\n  \
                 zonesdir: \"\"\n  database: \"\"\n  pidfile: \"{here}/pid\"\n  xfrdfile: \"{here}/xfrd\"\n  \
                 zonelistfile: \"{here}/zones\"\n  xfrdir: \"{here}\"\n  rrl-ratelimit: 0\n  rrl-whitelist-ratelimit: 0\n  \
                 minimal-responses: yes\nremote-control:\n  control-enable: no\n\
                 zone:\n  name: {ZONE}\n  zonefile: \"{}\"\n",
                zone()?
            );
            ("nsd".into(), vec!["-d".into(), "-c".into(), file("nsd.conf", &text)?])
        }
        Kind::Knot => {
            let text = format!(
                "server:\n  rundir: {here}\n  listen: [127.0.0.1@{port}, ::1@{port}]\n  udp-workers: 1\n  tcp-workers: 1\n  \
                 background-workers: 1\ndatabase:\n  storage: {here}\nlog:\n  - target: stderr\n    any: warning\n\
                 zone:\n  - domain: {ZONE}\n    file: {}\n    journal-content: none\n    zonefile-sync: -1\n",
                zone()?
            );
            ("knotd".into(), vec!["-c".into(), file("knot.conf", &text)?])
        }
        Kind::Bind => {
            let text = format!(
                "options {{ directory \"{here}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 port {port} {{ ::1; }};\n\
                 recursion no; minimal-responses yes; pid-file none; session-keyfile none; querylog no; notify no;\n\
                 dnssec-validation no; allow-transfer {{ none; }}; }};\ncontrols {{ }};\n\
                 zone \"{ZONE}\" {{ type primary; file \"{}\"; }};\n",
                zone()?
            );
            let args = ["-g", "-n", "1", "-U", "1", "-c"].map(String::from).to_vec();
            ("named".into(), [args, vec![file("named.conf", &text)?]].concat())
        }
        Kind::PowerDns => {
            let zones = file("zones.conf", &format!("zone \"{ZONE}\" {{ type master; file \"{}\"; }};\n", zone()?))?;
            let text = format!(
                "launch=bind\nbind-config={zones}\nlocal-address=127.0.0.1, ::1\nlocal-port={port}\nreceiver-threads=1\n\
                 distributor-threads=1\nreuseport=no\ndaemon=no\nguardian=no\nsocket-dir={here}\ndisable-syslog=yes\n\
                 loglevel=3\nsecurity-poll-suffix=\nversion-string=anonymous\nmax-tcp-connections=100\n",
            );
            file("pdns.conf", &text)?;
            ("pdns_server".into(), vec![format!("--config-dir={here}")])
        }
        Kind::CoreDns | Kind::CoreDnsLog => {
            let (health, ready) = (free(bed)?, free(bed)?);
            let log = if kind.logs() { "  log\n" } else { "" };
            let text = format!(
                "{ZONE}:{port} {{\n  bind 127.0.0.1 ::1\n  errors\n{log}  health 127.0.0.1:{health}\n  ready 127.0.0.1:{ready}\n  \
                 prometheus 127.0.0.1:{admin}\n  kubernetes cluster.local {ZONE} {{\n    kubeconfig {}\n    \
                 multicluster {ZONE}\n  }}\n  loadbalance\n  reload\n}}\n",
                kubeconfig()?
            );
            let folder = testbed::binaries().map_err(doing("CoreDNS"))?;
            (folder.join("coredns"), vec!["-conf".into(), file("Corefile", &text)?])
        }
    };
    Ok((found(&program)?, args))
}

/// What the servers call themselves, for those who want to compare with other versions.
pub(crate) fn versions(kinds: &[Kind], namesake: &Path) -> String {
    let coredns = testbed::binaries().map(|folder| folder.join("coredns")).unwrap_or_default();
    let asked = kinds.iter().filter_map(|kind| {
        let (program, flag): (&Path, _) = match kind {
            Kind::Namesake => (namesake, "--version"),
            Kind::Nsd => (Path::new("nsd"), "-v"),
            Kind::Knot => (Path::new("knotd"), "--version"),
            Kind::Bind => (Path::new("named"), "-v"),
            Kind::PowerDns => (Path::new("pdns_server"), "--version"),
            Kind::CoreDns => (&coredns, "-version"),
            _ => return None, // of this package, or one of these with something switched on
        };
        let output = Command::new(found(program).ok()?).arg(flag).output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        // What they say may begin with a date.
        let version = said.lines().find(|line| line.contains(char::is_numeric))?;
        Some(format!("{kind}: {}", version.trim()))
    });
    asked.collect::<Vec<_>>().join("\n")
}

/// Where a program is: servers are often outside of a user's path.
fn found(program: &Path) -> Result<PathBuf> {
    if program.is_absolute() {
        return Ok(program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let name = program.display();
    folders
        .find_map(|folder| Some(folder.join(program)).filter(|path| path.is_file()))
        .ok_or_else(|| format!("there is no {name}: `benches/run` installs it, or leave it out with --servers"))
}
