//! Clusters, the command, the members as the controller sees them, and what is known of one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use namesake::controller::members::{
    Convention, IdRules, Inventory, Member, MemberChange, MemberSettings, Members, Origin, Watch,
};
use namesake::model::ClusterId;
use namesake::reconcile::World;
use namesake::reconcile::objects::Time;
use namesake::reconcile::observed::Reach;
use namesake::source::kube::{Access, Connection, MemberUpdate, MemberWatch, Observer, Served};
use namesake::source::{Health, WatchPhase};
use testbed::{Bed, Cluster, merge_kubeconfigs};
use tokio::sync::mpsc;

/// How long a machine under load gets.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn id(text: &str) -> ClusterId {
    ClusterId::new(text).unwrap()
}

/// A kubeconfig with the administrators of all of these, each a context of its name.
pub fn contexts(bed: &Bed, clusters: &[Cluster]) -> PathBuf {
    let merged = merge_kubeconfigs(clusters.iter().map(Cluster::kubeconfig)).unwrap();
    bed.file("contexts.kubeconfig", &merged).unwrap()
}

/// What the command said.
#[derive(Debug)]
pub struct Ran {
    pub ok: bool,
    pub out: String,
    pub err: String,
}

/// Runs `namesake` with these arguments, and the kubeconfig.
pub async fn namesake(kubeconfig: &Path, args: &[&str]) -> Ran {
    let args: Vec<_> = args.iter().map(ToString::to_string).collect();
    let kubeconfig = kubeconfig.to_owned();
    let run = tokio::task::spawn_blocking(move || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_namesake"));
        command.args(args).arg("--kubeconfig").arg(kubeconfig).output().unwrap()
    });
    let out = tokio::time::timeout(PATIENCE * 2, run).await.expect("the command ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { ok: out.status.success(), out: text(out.stdout), err: text(out.stderr) }
}

/// Runs it, and wants it to succeed.
pub async fn must(kubeconfig: &Path, args: &[&str]) -> String {
    let ran = namesake(kubeconfig, args).await;
    assert!(ran.ok, "{args:?}: {}{}", ran.out, ran.err);
    ran.out
}

pub async fn connection(file: &Path) -> Connection {
    let access = Access::Kubeconfig { file: file.to_owned(), context: None };
    Connection::new(access, Arc::new(())).await.unwrap()
}

/// Settings with inventories in all namespaces.
pub fn inventories(of: impl IntoIterator<Item = Inventory>) -> MemberSettings {
    let inventories = of.into_iter().map(|inventory| (inventory, None)).collect();
    MemberSettings { inventories, ..MemberSettings::default() }
}

pub fn labelled() -> MemberSettings {
    inventories([Inventory::Secrets(Convention::Labelled)])
}

/// The members, as told.
pub struct Seen {
    changes: mpsc::Receiver<MemberChange>,
    pub health: Arc<Health<Watch>>,
    pub members: BTreeMap<ClusterId, Result<Member, String>>,
    pub refused: BTreeMap<Origin, String>,
    pub complete: bool,
    /// Every change in short.
    pub told: Vec<String>,
}

impl Seen {
    pub fn start(settings: MemberSettings, hub: Option<Connection>) -> Self {
        let observers = Arc::new(|_: &Origin| -> Arc<dyn Observer> { Arc::new(()) });
        let members = Members::new(settings, hub, observers);
        let (sender, changes) = mpsc::channel(64);
        let health = members.health();
        tokio::spawn(members.run(sender));
        let (members, refused) = (BTreeMap::new(), BTreeMap::new());
        Self { changes, health, members, refused, complete: false, told: Vec::new() }
    }

    fn take(&mut self, change: MemberChange) {
        let short = match change {
            MemberChange::Present(member) => {
                let short = format!("{} present", member.id);
                self.members.insert(member.id.clone(), Ok(member));
                short
            }
            MemberChange::Unusable { id, refusal, .. } => {
                let short = format!("{id} unusable: {refusal}");
                self.members.insert(id, Err(refusal.to_string()));
                short
            }
            MemberChange::Left(id) => {
                assert!(self.members.remove(&id).is_some(), "only a member leaves");
                format!("{id} left")
            }
            MemberChange::Refused { origin, refusal: Some(refusal) } => {
                let short = format!("{origin} refused: {refusal}");
                self.refused.insert(origin, refusal.to_string());
                short
            }
            MemberChange::Refused { origin, refusal: None } => {
                self.refused.remove(&origin).expect("only what is refused is mended");
                format!("{origin} mended")
            }
            MemberChange::Complete(complete) => {
                assert_ne!(self.complete, complete);
                self.complete = complete;
                format!("complete: {complete}")
            }
        };
        self.told.push(short);
    }

    /// Takes changes until it is so.
    pub async fn until(&mut self, what: &str, so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !so(self) {
            let left = end.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.changes.recv()).await {
                Ok(Some(change)) => self.take(change),
                Ok(None) => panic!("the members ended: {what}"),
                Err(_) => panic!("never: {what}; told {:#?}; refused {:#?}", self.told, self.refused),
            }
        }
    }

    /// Takes changes until a watch is down, with this in its trouble. No change need come of that.
    pub async fn until_down(&mut self, watch: Watch, words: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.health.status(watch).phase {
                WatchPhase::Down(trouble) if trouble.to_string().contains(words) => return,
                phase => assert!(Instant::now() < end, "never {words:?}: {phase:?}"),
            }
            self.pass(Duration::from_millis(20)).await;
        }
    }

    /// Takes what comes for a while.
    pub async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(Some(change)) =
            tokio::time::timeout(end.saturating_duration_since(Instant::now()), self.changes.recv()).await
        {
            self.take(change);
        }
    }

    pub async fn until_present(&mut self, ids: &[&str]) {
        self.until(&format!("{ids:?} are there"), |seen| {
            ids.iter().all(|text| matches!(seen.members.get(&id(text)), Some(Ok(_))))
        })
        .await;
    }

    pub fn member(&self, text: &str) -> &Member {
        self.members[&id(text)].as_ref().unwrap()
    }

    /// Why a member can't be used.
    pub fn unusable(&self, text: &str) -> Option<&str> {
        self.members.get(&id(text))?.as_ref().err().map(String::as_str)
    }

    /// Why what is registered there is no member.
    pub fn why_refused(&self, origin: &str) -> Option<&str> {
        self.refused.iter().find(|(at, _)| at.to_string() == origin).map(|(_, why)| why.as_str())
    }
}

/// A member that is followed into a world of its own.
pub struct Followed {
    pub watch: MemberWatch,
    pub world: World,
    pub cluster: ClusterId,
    pub served: Option<Served>,
    pub unreadable: Vec<String>,
    pub updates: usize,
}

impl Followed {
    pub fn start(member: &Member) -> Self {
        let mut world = World::default();
        world.set_reach(&member.id, Reach::Unheard { since: Time(0) });
        let watch = MemberWatch::start(&member.connection);
        let cluster = member.id.clone();
        Self { watch, world, cluster, served: None, unreadable: Vec::new(), updates: 0 }
    }

    /// Follows anew, by another connection, what is known staying.
    pub fn again(&mut self, member: &Member) {
        self.watch = MemberWatch::start(&member.connection);
    }

    pub async fn until(&mut self, what: &str, so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !so(self) {
            let left = end.saturating_duration_since(Instant::now());
            let health = self.watch.health().clone();
            match tokio::time::timeout(left, self.watch.next()).await {
                Ok(Some(update)) => {
                    self.updates += 1;
                    match &update {
                        MemberUpdate::Served(served) => self.served = Some(served.clone()),
                        MemberUpdate::Unreadable { name, skipped, .. } => {
                            self.unreadable.push(format!("{name}: {}", skipped.what));
                        }
                        _ => {}
                    }
                    update.tell(&mut self.world, &self.cluster);
                }
                Ok(None) => panic!("the watches ended: {what}"),
                Err(_) => panic!("never: {what}; {health:?}"),
            }
        }
    }

    pub async fn until_synced(&mut self) {
        self.until("everything is listed", |f| f.watch.health().synced()).await;
    }

    /// What is known under `namespace/name`.
    pub fn local(&self, key: &str) -> Option<&namesake::reconcile::observed::Local> {
        let (namespace, name) = key.split_once('/').unwrap();
        let key = namesake::model::ServiceKey::new(namespace, name).unwrap();
        self.world.members()[&self.cluster].local(&key)
    }
}

/// Rules that take everything by default.
pub fn set(name: &str) -> IdRules {
    IdRules { clusterset: Some(name.to_owned()), ..IdRules::default() }
}

/// The CRD of ClusterProperty, as far as it matters.
pub const ABOUT: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterproperties.about.k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: about.k8s.io
  scope: Cluster
  names: {kind: ClusterProperty, plural: clusterproperties, singular: clusterproperty}
  versions:
  - &version
    name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [value], properties: {value: {type: string, minLength: 1}}}
";

pub fn property(name: &str, value: &str) -> String {
    format!(
        "{{apiVersion: about.k8s.io/v1beta1, kind: ClusterProperty, metadata: {{name: {name}}}, spec: {{value: {value:?}}}}}"
    )
}

/// Installs the CRD and waits until its objects can be applied.
pub async fn install_about(cluster: &Cluster) {
    cluster.apply(ABOUT).await.unwrap();
    cluster.wait_for_crds(ABOUT).await.unwrap();
}

/// A Secret of the hub with a kubeconfig.
pub fn secret(name: &str, labels: &str, key: &str, kubeconfig: &str) -> String {
    let data = serde_json::to_string(&serde_json::json!({key: kubeconfig})).unwrap();
    format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: default, labels: {labels}}}, stringData: {data}}}"
    )
}
