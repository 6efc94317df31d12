//! A cluster, `namesake dns` that watches it, and a CoreDNS that forwards to it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use testbed::{Bed, Cluster, CoreDns, Dig, Process, Proxy, dig};

use super::objects::{ACCOUNT, RULES, clusterset, rbac, rule};

/// How long something may take that takes a moment. A machine under load gets its time; what must be quick is
/// measured where it matters.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How a rig begins.
#[derive(Default)]
pub struct Setup {
    /// The CRDs of this release; none if empty.
    pub crds: &'static str,
    /// Rights and objects that are there before Namesake starts.
    pub objects: String,
    /// More flags for `namesake dns`.
    pub flags: Vec<&'static str>,
}

impl Setup {
    /// The usual one: CRDs of v0.5.2, all rights, and the objects of [`clusterset`].
    pub fn whole() -> Setup {
        Setup { crds: "v0.5.2", objects: rbac(None) + "---\n" + &clusterset("v1beta1"), flags: Vec::new() }
    }
}

/// All that a test of the main job needs. Everything ends when it is dropped.
pub struct Rig {
    /// The server that is under test.
    pub namesake: Process,
    /// Its DNS address.
    pub dns: SocketAddr,
    /// Its admin address.
    pub admin: SocketAddr,
    /// The CoreDNS that forwards to it.
    pub coredns: CoreDns,
    /// The network between it and its API server.
    pub network: Proxy,
    /// The cluster.
    pub cluster: Cluster,
}

impl Rig {
    /// Starts a cluster with what `setup` says, then Namesake and CoreDNS. Does not wait until Namesake is ready.
    pub async fn start(setup: Setup) -> Rig {
        let bed = Bed::new().unwrap();
        let cluster = bed.cluster("c1").await.unwrap();
        if !setup.crds.is_empty() {
            cluster.install_crds(setup.crds).await.unwrap();
        }
        cluster.apply(&setup.objects).await.unwrap();
        let granted: Vec<_> = RULES.into_iter().filter(|it| setup.objects.contains(&rule(*it))).collect();
        until_allowed(&cluster, &granted).await;
        let network = cluster.proxy().unwrap();
        let kubeconfig = network.kubeconfig_for_service_account(ACCOUNT.0, ACCOUNT.1).await.unwrap();
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let (dns, admin) = (local(bed.port().unwrap()), local(bed.port().unwrap()));
        let namesake = spawn(&bed, "namesake", &kubeconfig, dns, admin, &setup.flags);
        let corefile = format!(
            ".:{{port}} {{
                bind 127.0.0.1
                errors
                forward clusterset.local {dns}
            }}"
        );
        let coredns = CoreDns::start_in(&bed, &corefile).await.unwrap();
        Rig { namesake, dns, admin, coredns, network, cluster }
    }

    /// Starts with [`Setup::whole`] and waits until it is ready.
    pub async fn ready() -> Rig {
        let rig = Rig::start(Setup::whole()).await;
        rig.wait_ready().await;
        rig
    }

    /// Waits until `/ready` says so.
    pub async fn wait_ready(&self) {
        self.namesake.wait_for_http(self.admin, "/ready", 200, PATIENCE).await.unwrap();
    }

    /// Asks CoreDNS. `name` is below `clusterset.local`.
    pub fn ask(&self, name: &str, kind: &str) -> Dig {
        self.ask_with(name, kind, &[])
    }

    /// Asks CoreDNS, with more arguments for `dig`.
    pub fn ask_with(&self, name: &str, kind: &str, more: &[&str]) -> Dig {
        ask(self.coredns.address(), name, kind, more)
    }

    /// Asks Namesake itself, for what `forward` does not pass on.
    pub fn ask_namesake(&self, name: &str, kind: &str) -> Dig {
        ask(self.dns, name, kind, &[])
    }

    /// The status and body of a path of the admin address; status 0 where nothing answers.
    async fn get(&self, path: &str) -> (u16, String) {
        testbed::http::get(self.admin, path, PATIENCE).await.unwrap_or_default()
    }

    /// `/ready?verbose`: code and text.
    pub async fn readiness(&self) -> (u16, String) {
        self.get("/ready?verbose").await
    }

    /// The value of one metric, with its labels as they are written; none where nothing answers.
    pub async fn metric(&self, series: &str) -> Option<f64> {
        let (code, text) = self.get("/metrics").await;
        if code == 0 {
            return None;
        }
        let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        let line = line.unwrap_or_else(|| panic!("no {series} in {code}:\n{text}"));
        line.rsplit(' ').next().unwrap().parse().ok()
    }

    /// Waits until CoreDNS answers these data, and says how long that took.
    pub async fn until(&self, name: &str, kind: &str, data: &[&str]) -> Duration {
        until(PATIENCE, &format!("{name} {kind} is {data:?}"), async || self.ask(name, kind).data(kind) == data).await
    }

    /// Waits until Namesake's sockets are open, and sees that it answers this name with SERVFAIL and the reason, Not
    /// Ready (L3), which CoreDNS passes on. CoreDNS's answer alone shows nothing: it says SERVFAIL by itself as long
    /// as nobody listens there.
    pub async fn not_ready(&self, name: &str) {
        self.until_readiness("DNS is bound", |_, text| text.contains("[+] dns sockets: bound")).await;
        let reply = self.ask_namesake(name, "A");
        let reasons: Vec<_> = reply.edns.iter().flat_map(|edns| &edns.errors).map(|(code, _)| *code).collect();
        assert_eq!((reply.status.as_str(), reasons.as_slice()), ("SERVFAIL", &[14][..]), "{}", reply.text);
        assert!(!reply.has("aa") && reply.authority.is_empty(), "{}", reply.text);
        assert_eq!(self.ask(name, "A").status, "SERVFAIL");
    }

    /// Waits until CoreDNS answers this status.
    pub async fn until_status(&self, name: &str, status: &str) -> Duration {
        until(PATIENCE, &format!("{name} is {status}"), async || self.ask(name, "A").status == status).await
    }

    /// Waits until `/ready?verbose` satisfies this.
    pub async fn until_readiness(&self, what: &str, holds: impl Fn(u16, &str) -> bool) {
        let wanted = format!("/ready?verbose: {what}");
        until(PATIENCE, &wanted, async || {
            let (code, text) = self.readiness().await;
            let holds = holds(code, &text);
            if !holds {
                println!("{code} {text}");
            }
            holds
        })
        .await;
    }
}

/// Waits until the account may do this: the authorizer learns of what was granted by a watch of its own, and would
/// refuse what comes before.
async fn until_allowed(cluster: &Cluster, rules: &[(&str, &str, &str)]) {
    for (group, resource, verb) in rules {
        let attributes = json!({"group": group, "resource": resource, "verb": verb});
        until(PATIENCE, &format!("{verb} {resource} is allowed"), async || {
            cluster.authorizes(ACCOUNT, attributes.clone()).await.unwrap()["allowed"] == true
        })
        .await;
    }
}

/// Starts `namesake dns`.
pub fn spawn(
    bed: &Bed,
    name: &str,
    kubeconfig: &PathBuf,
    dns: SocketAddr,
    admin: SocketAddr,
    flags: &[&str],
) -> Process {
    bed.process(name, env!("CARGO_BIN_EXE_namesake"))
        .args(["dns", "--context", "c1", "--kubeconfig"])
        .arg(kubeconfig)
        .args(["--listen", &dns.to_string(), "--admin", &admin.to_string()])
        .args(flags)
        .spawn()
        .unwrap()
}

fn ask(server: SocketAddr, name: &str, kind: &str, more: &[&str]) -> Dig {
    let name = format!("{name}{}clusterset.local.", if name.is_empty() { "" } else { "." });
    let args: Vec<_> = more.iter().copied().chain([name.as_str(), kind]).collect();
    dig(server, &args).unwrap()
}

/// Waits until a condition holds and says how long that took. Panics after `within`.
pub async fn until(within: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < within, "not after {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}
