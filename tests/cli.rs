//! The commands as a person meets them: help, errors, exit codes, and the files that must say the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may end so")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use namesake::config::{Keyed, Shape, controller, dns, example};

/// `namesake` without the variables of this machine.
fn namesake(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_namesake"));
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let ours = name.to_string_lossy().starts_with("NAMESAKE_");
        if ours || name == "KUBERNETES_SERVICE_HOST" || name == "KUBECONFIG" {
            command.env_remove(&name);
        }
    }
    command
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ran { code: status.code(), out: String::from_utf8(stdout).unwrap(), err: String::from_utf8(stderr).unwrap() }
}

fn ran(args: &[&str]) -> Ran {
    run(&mut namesake(args))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn help_goes_to_stdout_and_is_no_error() {
    for args in [
        &["--help"][..],
        &["dns", "--help"],
        &["dns", "-h"],
        &["controller", "--help"],
        &["join", "--help"],
        &["leave", "--help"],
        &["explain", "--help"],
        &["--version"],
    ] {
        let ran = ran(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.out.is_ascii() || args[0] == "explain", "{args:?}: plain text");
        assert!(!ran.out.contains('\u{1b}'), "{args:?}: no colours");
    }
    assert_eq!(ran(&["--version"]).out, concat!("namesake ", env!("CARGO_PKG_VERSION"), "\n"));
}

fn has_every_flag_under_a_heading_with_its_default<K: Keyed>() {
    let help = ran(&[K::COMMAND, "--help"]).out;
    for spec in K::TABLE {
        assert!(
            help.contains(&format!("{} ", spec.flag())) || help.contains(&format!("{}[", spec.flag())),
            "{}",
            spec.name
        );
        assert!(help.contains(spec.section.title()), "{}", spec.section.title());
        if !spec.default.is_empty() && spec.shape != Shape::Switch {
            assert!(help.contains(&format!("[default: {}]", spec.default)), "{}", spec.name);
        }
    }
    let variable = format!("{}LOG_FORMAT", K::PREFIX);
    for words in ["Examples:", "Exit codes:", &variable] {
        assert!(help.contains(words), "{words}");
    }
}

#[test]
fn the_help_has_every_flag_under_a_heading_with_its_default() {
    has_every_flag_under_a_heading_with_its_default::<dns::Key>();
    has_every_flag_under_a_heading_with_its_default::<controller::Key>();
}

#[test]
fn what_was_asked_for_wrongly_ends_with_2_and_a_remedy() {
    let cases: [(&[&str], &str); 14] = [
        (&["dns", "--from", "x", "--ttl", "9999"], "namesake: --ttl 9999: more than 3600; give 0 to 3600 seconds\n"),
        (
            &["dns", "--from", "x", "--zone", "a..b", "--lameduck", "5"],
            "namesake: --zone a..b: \"\" is no DNS label (1 to 63 letters, digits and dashes); give a domain such as clusterset.local\n\
             namesake: --lameduck 5: has no unit; write it as 5s, 100ms or 1m30s, so 5s for seconds\n",
        ),
        (
            &["dns"],
            "namesake: no source: nothing says where ServiceImports come from; give --from DIR or --kubeconfig FILE, or run in a pod\n",
        ),
        (
            &["dns", "--config", "/nonexistent.yaml"],
            "namesake: /nonexistent.yaml: No such file or directory (os error 2); give a readable file to --config\n",
        ),
        (&["dns", "--zones", "a"], "similar argument exists: '--zone'"),
        (
            &["controller"],
            "namesake: no members: nothing says where member clusters are; give --hub CONTEXT, --member CONTEXT or --member-folder DIR, or run in a pod of the hub\n",
        ),
        (
            &["controller", "--hub", "h", "--shard", "3/3", "--families=both", "--member", "a=x,b=x"],
            "namesake: --member b=x: the context a has this id too; give each cluster an id of its own\n\
             namesake: --families both: no such choice; give intersection or union\n\
             namesake: --shard 3/3: there is no such part; write I/N with I from 0 to N-1, such as 0/3\n",
        ),
        (
            &["controller", "--no-hub", "--hub", "h", "--member", "a"],
            "namesake: --hub h: --no-hub says that there is none; keep one of them\n",
        ),
        (
            &["controller", "--config", "/nonexistent.yaml"],
            "namesake: /nonexistent.yaml: No such file or directory (os error 2); give a readable file to --config\n",
        ),
        (&["controller", "--members", "a"], "similar argument exists: '--member'"),
        (&["join", "a"], "--hub <CONTEXT>"),
        (&["leave", "a", "--hub", "h", "--member-only"], "cannot be used with"),
        (&["serve"], "unrecognized subcommand 'serve'"),
        (&["explain"], "<NAME>"),
    ];
    for (args, said) in cases {
        let ran = ran(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(if said.ends_with('\n') { ran.err == said } else { ran.err.contains(said) }, "{args:?}: {}", ran.err);
    }
    assert_eq!(ran(&[]).code, Some(2), "no command at all");
}

#[test]
fn the_three_layers_name_themselves_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dns.yaml");
    std::fs::write(&file, "version: 1\nfrom: data\nttl: 4000\nbufsize: 9\ngrace: soon\n").unwrap();
    let ran = run(namesake(&["dns", "--ttl", "5"])
        .env("NAMESAKE_CONFIG", &file)
        .env("NAMESAKE_TTL", "5000")
        .env("NAMESAKE_BUFSIZE", "8"));
    let expected =
        format!("namesake: {}:5: grace soon: is no duration; write it as 5s, 100ms or 1m30s\n", file.display());
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains(&expected), "{}", ran.err);
    assert!(ran.err.contains("namesake: NAMESAKE_BUFSIZE 8: less than 512; give 512 to 4096 bytes\n"), "{}", ran.err);
    assert!(!ran.err.contains("ttl"), "the flag wins: {}", ran.err);
}

#[test]
fn the_layers_of_the_controller_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("controller.yaml");
    std::fs::write(&file, "version: 1\nno_hub: true\nmember: [a=A, b]\ndrain: soon\nfamilies: any\nttl: 5\n").unwrap();
    let shown = file.display();
    let start = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = namesake(&[&["controller"], args].concat());
        run(command.env("NAMESAKE_CONTROLLER_CONFIG", &file).envs(variables.iter().copied()))
    };
    let unknown = start(&[], &[]);
    assert_eq!(
        (unknown.code, unknown.err),
        (
            Some(2),
            format!("namesake: {shown}:6: ttl: no such key; `namesake controller --help` has them all, with _ for -\n")
        )
    );
    std::fs::write(&file, "version: 1\nno_hub: true\nmember: [a=A, b]\ndrain: soon\nfamilies: any\n").unwrap();
    let wrong = start(&[("NAMESAKE_CONTROLLER_FAMILIES", "both"), ("NAMESAKE_DRAIN", "x")], &["--drain", "9"]);
    assert_eq!(
        (wrong.code, wrong.err),
        (
            Some(2),
            format!(
                "namesake: {shown}:3: member a=A: \"A\" can't be a cluster id, which is a DNS label of 1 to 63 lower-case \
                 letters, digits and dashes; give another one\n\
                 namesake: NAMESAKE_CONTROLLER_FAMILIES both: no such choice; give intersection or union\n\
                 namesake: --drain 9: has no unit; write it as 5s, 100ms or 1m30s, so 9s for seconds\n"
            )
        )
    );
    // A file of the other command is told apart at once.
    std::fs::write(&file, "version: 1\nzone: [a.test]\n").unwrap();
    assert!(start(&[], &[]).err.contains(":2: zone: no such key; "), "{}", start(&[], &[]).err);
}

#[test]
fn join_and_leave_stand_in_the_help() {
    let help = ran(&["--help"]).out;
    for command in ["dns", "controller", "explain", "sandbox", "plan", "generate", "join", "leave"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{command} "))), "{command}: {help}");
    }
}

#[test]
fn an_unknown_key_of_the_file_names_file_line_and_nearest_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dns.yaml");
    std::fs::write(&file, "version: 1\n\nzones: [a.test]\n").unwrap();
    let ran = ran(&["dns", "--config", file.to_str().unwrap()]);
    assert_eq!(ran.err, format!("namesake: {}:3: zones: no such key; did you mean zone?\n", file.display()));
    assert_eq!(ran.code, Some(2));
}

fn the_example_file_is_that_of<K: Keyed>() {
    let name = format!("{}.example.yaml", K::COMMAND);
    if std::fs::read_to_string(root().join("config").join(&name)).unwrap_or_default() != example::<K>() {
        let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
        std::fs::write(&new, example::<K>()).unwrap();
        panic!("config/{name} is not what the settings are; if that is meant: cp {} config/", new.display());
    }
}

/// The example files are written from the one definition of the settings.
#[test]
fn the_example_files_say_every_key_and_its_default() {
    the_example_file_is_that_of::<dns::Key>();
    the_example_file_is_that_of::<controller::Key>();
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = namesake(&["dns", "--help"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), String::from_utf8(out.stderr).unwrap().as_str()), (Some(0), ""));
}

/// An HTTP server for one request; what it was asked comes back.
fn one_answer(response: &'static str) -> (String, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            request.push(byte[0]);
        }
        stream.write_all(response.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    (address, server)
}

#[test]
fn explain_asks_a_server_with_the_full_name_and_prints_its_answer() {
    let (address, server) = one_answer("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nbecause so.\n");
    let ran = ran(&["explain", "_http._tcp.web.shop", "srv", "--server", &address]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "because so.\n", ""));
    let request = server.join().unwrap();
    let line = request.lines().next().unwrap();
    assert_eq!(line, "GET /explain?name=_http._tcp.web.shop.svc.clusterset.local.&type=srv HTTP/1.1");
    assert!(request.contains(&format!("Host: {address}\r\n")));
}

#[test]
fn explain_says_what_is_wrong_with_the_server() {
    let (address, server) = one_answer("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    let ran = run(&mut namesake(&["explain", "web.shop", "--server", &address]));
    let said = format!(
        "namesake: {address}: HTTP status 404: no reason given; is it the --admin address of `namesake dns`?\n"
    );
    assert_eq!((ran.code, ran.err), (Some(1), said));
    server.join().unwrap();

    // A port that nobody takes meanwhile.
    let bed = testbed::Bed::new().unwrap();
    let closed = format!("127.0.0.1:{}", bed.port().unwrap());
    let ran = run(&mut namesake(&["explain", "web.shop", "--server", &closed]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with(&format!("namesake: {closed}: can't connect (")), "{}", ran.err);
    assert!(
        ran.err.ends_with("; is `namesake dns` running, and is this its --admin address?\n")
            || ran.err.contains("is `namesake dns` running"),
        "{}",
        ran.err
    );

    let ran = run(&mut namesake(&["explain", "web.shop", "--server", "127.0.0.1"]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("give the server's admin address"), "{}", ran.err);

    let ran = run(&mut namesake(&["explain", "web.shop", "--server", "127.0.0.1:1", "--from", "x"]));
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

#[test]
fn explain_reads_a_folder_and_completes_short_names() {
    let example = root().join("config/example");
    let example = example.to_str().unwrap();
    for name in ["web.shop", "web.shop.svc", "web.shop.svc.clusterset.local", "WEB.shop.svc.clusterset.local."] {
        let ran = ran(&["explain", name, "--from", example]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{name}");
        assert!(ran.out.contains(" 5 IN A 10.96.40.17\n") && ran.out.contains("ServiceImport shop/web"), "{}", ran.out);
    }
    // A negative answer is an explanation too, and names what is near.
    let ran = ran(&["explain", "webb.shop", "AAAA", "--from", example, "--zone", "clusterset.local"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("NXDOMAIN") && ran.out.contains("web.shop.svc"), "{}", ran.out);
}

#[test]
fn explain_refuses_what_it_can_not_ask() {
    let example = root().join("config/example");
    let example = example.to_str().unwrap();
    let long = "a".repeat(64);
    for (args, said) in [
        (["a..b", "A"], "\"a..b\" is no DNS name"),
        (["", "A"], "\"\" is no DNS name"),
        ([long.as_str(), "A"], "is no DNS name"),
        (["web.shop", "BLA"], "\"BLA\" is no record type; give A, AAAA, SRV, TXT or TYPE<number>"),
    ] {
        let ran = ran(&["explain", args[0], args[1], "--from", example]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.err.starts_with("namesake: ") && ran.err.contains(said), "{}", ran.err);
    }
    let missing = ran(&["explain", "web.shop", "--from", "/nonexistent"]);
    assert_eq!(missing.code, Some(1));
    assert_eq!(
        missing.err,
        "namesake: /nonexistent: there is no such folder; create it, or give another with --from\n"
    );
    // Outside pods, without any source: the cluster that kubectl would ask.
    let kubectl = run(namesake(&["explain", "web.shop"]).env("HOME", "/nonexistent"));
    assert_eq!(kubectl.code, Some(1));
    assert!(kubectl.err.contains("/nonexistent/.kube/config"), "{}", kubectl.err);
}

#[test]
fn a_server_that_can_not_start_ends_with_1_and_says_why() {
    // The reason is the source's, whichever of its parts is seen to end first.
    for _ in 0..10 {
        let ran = ran(&["dns", "--from", "/nonexistent", "--listen", "127.0.0.1:0", "--admin", "none"]);
        assert_eq!(ran.code, Some(1));
        assert_eq!(
            ran.err,
            "namesake: /nonexistent: there is no such folder; create it, or give another with --from\n"
        );
    }
    let example = root().join("config/example");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (listen, admin) in [(address.as_str(), "none"), ("127.0.0.1:0", address.as_str())] {
        let ran = ran(&["dns", "--from", example.to_str().unwrap(), "--listen", listen, "--admin", admin]);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.starts_with("namesake: ") && ran.err.contains(&address), "{}", ran.err);
    }
    let ran = ran(&["dns", "--from", example.to_str().unwrap(), "--listen", "192.0.2.1:0", "--admin", "none"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("192.0.2.1"), "{}", ran.err);
}
