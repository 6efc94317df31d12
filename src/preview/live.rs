//! Clusters that run: each read once, as the controller would follow it. Nothing is written to any.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::controller::members::{Member, MemberChange, MemberSettings, Members, Origin, Watch};
use crate::model::{ClusterId, Label};
use crate::reconcile::World;
use crate::reconcile::observed::Reach;
use crate::reconcile::settings::LabelRule;
use crate::reconcile::world::Kind;
use crate::source::kube::{Access, Connection, MemberUpdate, MemberWatch, Observer};
use crate::source::{Health, Trouble, WatchPhase, member};

/// How often it is looked whether a list will never come.
const LOOK: Duration = Duration::from_millis(100);

/// How long to wait for what an API server can do, once everything else is there: we may not be allowed to ask.
const FEATURES: Duration = Duration::from_secs(3);

/// Clusters that could not be read: one line each, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveError {
    lines: Vec<String>,
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

impl std::error::Error for LiveError {}

/// What clusters hold.
#[derive(Debug)]
pub struct Live {
    /// All of it.
    pub world: World,
    /// What could not be read, or is not known, each a sentence.
    pub hints: Vec<String>,
}

/// Reads the members of these settings, from `hub` where there are inventories, within `patience`. `auto_export` as in
/// the policies.
///
/// # Errors
/// Every cluster that could not be read.
pub async fn live(
    settings: MemberSettings,
    hub: Option<Access>,
    auto_export: Option<LabelRule>,
    patience: Duration,
) -> Result<Live, LiveError> {
    let end = Instant::now() + patience;
    let hub = match hub {
        Some(access) => match Connection::new(access, Arc::new(())).await {
            Ok(connection) => Some(connection),
            Err(error) => return Err(LiveError { lines: vec![format!("the hub: {error}")] }),
        },
        None => None,
    };
    if let Some(folder) = &settings.folder
        && let Err(error) = std::fs::read_dir(folder)
    {
        let line =
            format!("{}: {error}; give a folder of <id>.kubeconfig files with --member-folder", folder.display());
        return Err(LiveError { lines: vec![line] });
    }
    let contexts = settings.contexts.len();
    let only_contexts = settings.folder.is_none() && settings.inventories.is_empty();
    let observers = Arc::new(|_: &Origin| -> Arc<dyn Observer> { Arc::new(()) });
    let members = Members::new(settings, hub, observers);
    let health = members.health();
    let (sender, mut changes) = mpsc::channel(64);
    let mut finding = JoinSet::new();
    finding.spawn(members.run(sender));
    let mut reading = Reading { end, ..Reading::default() };
    loop {
        if reading.is_done(only_contexts.then_some(contexts)) {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep_until(end) => break,
            Some(change) = changes.recv() => reading.change(change),
            Some(done) = reading.tasks.join_next() => {
                if let Ok((id, read)) = done {
                    reading.read.insert(id, read);
                }
            }
        }
    }
    reading.finish(&health, auto_export, patience).await
}

/// What was read so far.
struct Reading {
    end: Instant,
    /// The task that reads a member.
    members: BTreeMap<ClusterId, AbortHandle>,
    tasks: JoinSet<(ClusterId, Result<Read, String>)>,
    read: BTreeMap<ClusterId, Result<Read, String>>,
    unusable: BTreeMap<ClusterId, (String, bool)>,
    refused: BTreeMap<Origin, (String, bool)>,
    complete: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            end: Instant::now(),
            members: BTreeMap::new(),
            tasks: JoinSet::new(),
            read: BTreeMap::new(),
            unusable: BTreeMap::new(),
            refused: BTreeMap::new(),
            complete: false,
        }
    }
}

impl Reading {
    fn change(&mut self, change: MemberChange) {
        match change {
            MemberChange::Present(member) => {
                self.forget(&member.id);
                let (id, end) = (member.id.clone(), self.end);
                let task = self.tasks.spawn(async move { (member.id.clone(), read(&member, end).await) });
                self.members.insert(id, task);
            }
            MemberChange::Unusable { id, origin, refusal } => {
                self.forget(&id);
                let line = format!("cluster {id} can't be used ({origin}): {refusal}");
                self.unusable.insert(id, (line, refusal.is_passing()));
            }
            MemberChange::Left(id) => self.forget(&id),
            MemberChange::Refused { origin, refusal: Some(refusal) } => {
                let line = format!("{origin} gives no member: {refusal}");
                self.refused.insert(origin, (line, refusal.is_passing()));
            }
            MemberChange::Refused { origin, refusal: None } => {
                self.refused.remove(&origin);
            }
            MemberChange::Complete(complete) => self.complete = complete,
        }
    }

    /// What was known of a member is known no more.
    fn forget(&mut self, id: &ClusterId) {
        if let Some(task) = self.members.remove(id) {
            task.abort();
        }
        self.read.remove(id);
        self.unusable.remove(id);
    }

    /// Whether waiting longer would change nothing. `candidates` is how many there are, where that is known.
    fn is_done(&self, candidates: Option<usize>) -> bool {
        let settled = self.unusable.values().chain(self.refused.values()).all(|(_, passing)| !passing);
        let known = self.members.len() + self.unusable.len() + self.refused.len();
        let all = self.complete || candidates == Some(known);
        all && settled && self.members.keys().all(|id| self.read.contains_key(id))
    }

    async fn finish(
        mut self,
        health: &Health<Watch>,
        auto_export: Option<LabelRule>,
        patience: Duration,
    ) -> Result<Live, LiveError> {
        // Those that are still at it have the same end, and say what they wait for.
        while let Some(done) = self.tasks.join_next().await {
            if let Ok((id, read)) = done {
                self.read.insert(id, read);
            }
        }
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.unusable.into_values().chain(self.refused.into_values()).map(|(line, _)| line));
        let mut world = World::new(auto_export);
        let mut hints = Vec::new();
        for (id, read) in self.read.into_iter().filter(|(id, _)| self.members.contains_key(id)) {
            match read {
                Ok(read) => read.tell(&mut world, &id, &mut hints),
                Err(why) => lines.push(format!("cluster {id} can't be read: {why}")),
            }
        }
        if !self.complete && lines.is_empty() {
            let waiting: Vec<_> = health.needed().into_iter().filter(|watch| !health.status(*watch).synced).collect();
            lines.extend(waiting.into_iter().map(|watch| {
                let why = match health.status(watch).phase {
                    WatchPhase::Down(trouble) => trouble.to_string(),
                    _ => late(patience),
                };
                format!("the members can't be listed: {}: {why}", place(watch))
            }));
            if lines.is_empty() {
                lines.push(format!("the members are not all known: {}", late(patience)));
            }
        }
        if lines.is_empty() && world.members().is_empty() {
            lines.push(
                "there are no members: name some with --member or --member-folder, or let them join the hub".to_owned(),
            );
        }
        world.set_members_listed(true);
        if lines.is_empty() { Ok(Live { world, hints }) } else { Err(LiveError { lines }) }
    }
}

fn late(patience: Duration) -> String {
    format!("no answer within {}s; raise --timeout, or check the network", patience.as_secs())
}

fn place(watch: Watch) -> String {
    match watch {
        Watch::Contexts => "the contexts of --member".to_owned(),
        Watch::Folder => "the folder of --member-folder".to_owned(),
        Watch::Secrets(convention) => format!("the hub's Secrets ({convention})"),
        Watch::Profiles => "the hub's ClusterProfiles".to_owned(),
        Watch::ProfileSecrets => "the hub's Secrets of ClusterProfiles".to_owned(),
    }
}

/// What one member holds.
struct Read {
    updates: Vec<MemberUpdate>,
    /// Whether it said what it can do.
    served: bool,
}

impl Read {
    fn tell(self, world: &mut World, id: &ClusterId, hints: &mut Vec<String>) {
        world.set_reach(id, Reach::Live);
        if !self.served {
            hints.push(format!(
                "{id}: what its API server can do is not known: give this account get on customresourcedefinitions there"
            ));
        }
        for update in self.updates {
            if let MemberUpdate::Unreadable { kind, namespace, name, skipped } = &update {
                let kind = member::kind_name(*kind);
                let whole = Label::new(namespace).map_or_else(|| name.clone(), |_| format!("{namespace}/{name}"));
                hints.push(format!("{id}: {kind} {whole} is left out: {}", skipped.what));
            }
            update.tell(world, id);
        }
    }
}

/// Reads a member until every list is there, or `end`, or one can't come.
async fn read(member: &Member, end: Instant) -> Result<Read, String> {
    let mut watch = MemberWatch::start(&member.connection);
    let health = watch.health().clone();
    let mut read = Read { updates: Vec::new(), served: false };
    let mut synced = None;
    loop {
        if health.synced() {
            let since = *synced.get_or_insert_with(Instant::now);
            if read.served || since.elapsed() > FEATURES || Instant::now() >= end {
                return Ok(read);
            }
        } else if Instant::now() >= end || is_hopeless(&health) {
            return Err(troubles(&health));
        }
        // Health is not told, so it is looked at now and then.
        if let Ok(update) = tokio::time::timeout_at(end.min(Instant::now() + LOOK), watch.next()).await {
            let Some(update) = update else { return Err("its watches have ended; please report this".to_owned()) };
            read.served |= matches!(update, MemberUpdate::Served(_));
            read.updates.push(update);
        }
    }
}

/// Whether every list is there, or will not come by waiting.
fn is_hopeless(health: &Health<Kind>) -> bool {
    Kind::ALL.iter().all(|kind| {
        let status = health.status(*kind);
        status.synced || matches!(status.phase, WatchPhase::Down(ref trouble) if is_lasting(trouble))
    })
}

fn is_lasting(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::CrdMissing { .. } | Trouble::Forbidden { .. } | Trouble::Unauthorized { .. })
}

/// What is missing, and why; the same reason once.
fn troubles(health: &Health<Kind>) -> String {
    let mut said: Vec<String> = Vec::new();
    for kind in Kind::ALL {
        let status = health.status(kind);
        let why = match status.phase {
            _ if status.synced => continue,
            WatchPhase::Down(trouble) => trouble.to_string(),
            WatchPhase::Starting | WatchPhase::Live => {
                "its lists are not complete yet; raise --timeout, or check the network".to_owned()
            }
        };
        if !said.contains(&why) {
            said.push(why);
        }
    }
    said.join("; ")
}
