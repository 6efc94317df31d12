//! One job, carried out: request by request, until one fails.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::sync::watch;
use tracing::{debug, info};

use super::place::Place;
use super::{Done, Job, Trouble, events, is_new, replace, request};
use crate::api;
use crate::controller::Status;
use crate::metrics::ControllerMetrics;
use crate::model::ClusterId;
use crate::reconcile::naming::DERIVED_LENGTH;
use crate::reconcile::objects::{Identity, Owner, OwnerKind};
use crate::reconcile::plan::{Action, Change, Subject};
use crate::reconcile::world::Kind;
use crate::source::kube::{Connection, Write, WriteError, version_of};
use crate::source::member::{self, Observed};

/// What is needed to write to one member.
#[derive(Clone)]
pub(in crate::controller) struct Applier {
    pub(in crate::controller) cluster: ClusterId,
    pub(in crate::controller) connection: Connection,
    /// The version of the Multi-Cluster Services API to write.
    pub(in crate::controller) version: &'static str,
    /// Whether we may write, as the election says.
    pub(in crate::controller) leading: watch::Receiver<bool>,
    pub(in crate::controller) status: Arc<Status>,
    pub(in crate::controller) metrics: Arc<ControllerMetrics>,
}

/// How many slices are made at a time.
const SIDE_BY_SIDE: usize = 8;

/// What came of one action.
#[derive(Default)]
struct Written {
    /// Objects as they are now, or their absence, each with its version.
    seen: Vec<(Observed, u64)>,
    trouble: Option<Trouble>,
    wrote: bool,
}

impl Written {
    /// Takes an answer in.
    fn see(&mut self, kind: Kind, answer: &str) -> Option<Observed> {
        let object = member::observed(kind, answer).ok()?.object;
        self.seen.push((object.clone(), version_of(answer)));
        Some(object)
    }

    /// Takes a deletion in: whatever a watch may still say of that version or an older one is old.
    fn gone(&mut self, action: &Action, place: &Place) {
        let (Some(id), Some(absent)) = (deleted(action), absence(action, place)) else { return };
        let version = id.resource_version.parse().map_or(0, |version: u64| version.saturating_add(1));
        self.seen.push((absent, version));
    }
}

/// A job under way.
struct Attempt<'a> {
    by: &'a Applier,
    seen: Vec<(Observed, u64)>,
    /// Uids of what this job has made, for owner references.
    made: HashMap<OwnerKind, Box<str>>,
    wrote: bool,
}

impl Applier {
    /// Carries out `job`.
    pub(in crate::controller) async fn run(&self, job: Job) -> Done {
        let mut attempt = Attempt { by: self, seen: Vec::new(), made: HashMap::new(), wrote: false };
        let outcome = attempt.all(&job).await;
        if outcome.is_ok() {
            attempt.tell(&job).await;
        }
        let Attempt { seen, wrote, .. } = attempt;
        Done { target: job.target, seen, trouble: outcome.err(), wrote }
    }

    /// We may write: by the election, and by the clock, since a process that was halted has not heard of it yet.
    fn may_write(&self) -> Result<(), Trouble> {
        if *self.leading.borrow() && self.status.lock().may_write() { Ok(()) } else { Err(Trouble::NotLeading) }
    }

    /// Carries out one action.
    async fn one(&self, action: &Action, place: &Place) -> Written {
        let mut written = Written::default();
        written.trouble = self.write(action, place, &mut written).await.err();
        written
    }

    async fn write(&self, action: &Action, place: &Place, written: &mut Written) -> Result<(), Trouble> {
        let Some(write) = request::of(action, place, self.version) else {
            return Err(Trouble::Refused(format!("{place} can't be written out; please report this")));
        };
        let status = matches!(action, Action::ApplyImportStatus(..) | Action::ApplyExportStatus(..));
        let resource = place.resource(status);
        if let Action::DeleteNamespace(..) = action {
            super::emptiness::check(&self.connection, &place.name).await?;
        }
        self.may_write()?;
        let meaning = |error: &WriteError| match error {
            WriteError::Refused(refusal) if is_delete(action) && refusal.code == 404 => Trouble::Gone,
            error => Trouble::of(error, action, &place.to_string()),
        };
        let answer = match self.send(write, resource, meaning).await {
            Err(Trouble::Gone) => {
                written.gone(action, place);
                return Ok(());
            }
            answer => answer?,
        };
        written.wrote = true;
        if is_delete(action) {
            written.gone(action, place);
            return Ok(());
        }
        let Some(object) = written.see(place.kind, &answer) else { return Ok(()) };
        let Some(difference) = replace::difference(action, &object) else { return Ok(()) };
        // Another manager has put something beside ours.
        let Some(patch) = replace::patch(action, &answer, self.version) else { return Ok(()) };
        self.may_write()?;
        let write = request::replace(place, self.version, status, &patch);
        let answer = self.send(write, resource, |error| Trouble::of(error, action, &place.to_string())).await?;
        match written.see(place.kind, &answer).and_then(|object| replace::difference(action, &object)) {
            None => Ok(()),
            Some(still) => Err(Trouble::Refused(format!(
                "{place}: {difference}, and after it was replaced still: {still}; an admission webhook of the cluster \
                 may change it: exempt objects with the label app.kubernetes.io/managed-by=namesake from it"
            ))),
        }
    }

    /// One request, counted; `of` says what its failure means.
    async fn send(
        &self,
        write: Write,
        resource: &'static str,
        of: impl FnOnce(&WriteError) -> Trouble,
    ) -> Result<String, Trouble> {
        let (verb, begin) = (write.verb, Instant::now());
        let answer = self.connection.write(write).await.map_err(|error| of(&error));
        let outcome = answer.as_ref().map_or_else(Trouble::label, |_| "ok");
        self.metrics.write(self.cluster.as_str(), resource, verb, outcome, begin.elapsed().as_secs_f64());
        answer
    }
}

impl Attempt<'_> {
    /// Carries out every change. One that fails for itself stops what hangs on it; what does not goes on, so that one
    /// object that is refused keeps nobody else's endpoints from coming and going, nor the export from saying so.
    async fn all(&mut self, job: &Job) -> Result<(), Trouble> {
        let mut first: Option<Trouble> = None;
        let mut failed_slices: Vec<String> = Vec::new();
        let mut there = self.absent(job).await?;
        let mut rest = &job.changes[..];
        while let Some(next) = rest.first() {
            // Slices that are made hang on nothing of each other; what is changed keeps its order (HDL-05).
            let made = rest.iter().take(SIDE_BY_SIDE).take_while(|change| is_new_slice(&change.action)).count();
            let (group, after) = rest.split_at(made.max(1).min(rest.len()));
            let done_before = job.changes.len() - rest.len();
            rest = after;
            let again = is_new(&next.action) && deleted_before(job, done_before, &next.action);
            let mut actions = Vec::new();
            for change in group {
                let place = Place::of(&change.action);
                if hangs_on(&failed_slices, &change.action, &place) {
                    continue;
                }
                let checked = match there.remove(&place) {
                    Some(trouble) => Err(trouble),
                    None if again => self.check_absent(&change.action, &place).await,
                    None => Ok(()),
                };
                let action = checked.and_then(|()| self.with_owners(&change.action));
                actions.push((change, place, action));
            }
            let by = self.by;
            let requests = actions.into_iter().map(|(change, place, action)| async move {
                let done = match action {
                    Ok(action) => by.one(&action, &place).await,
                    Err(trouble) => Written { trouble: Some(trouble), ..Written::default() },
                };
                (change, place, done)
            });
            for (change, place, done) in join_all(requests).await {
                self.wrote |= done.wrote;
                self.take(done.seen);
                match done.trouble {
                    None => self.log(job, change, &place),
                    Some(trouble) if trouble.is_of_one() => {
                        if matches!(change.action, Action::ApplySlice(_)) {
                            failed_slices.push(slice_base(&change.action, &place));
                        }
                        first.get_or_insert(trouble);
                    }
                    Some(trouble) => return Err(trouble),
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    fn log(&self, job: &Job, change: &Change, place: &Place) {
        let (cluster, reason) = (&self.by.cluster, &change.reason);
        match &change.action {
            Action::ApplyImport(object) if object.existing.is_none() => {
                info!(%cluster, "{} is imported: {reason}", job.target);
            }
            Action::DeleteImport(..) => info!(%cluster, "{} is imported no more: {reason}", job.target),
            Action::CreateNamespace(_) | Action::CreateExport(_) => info!(%cluster, "made {place}: {reason}"),
            Action::DeleteNamespace(..) | Action::DeleteExport(..) => info!(%cluster, "deleted {place}: {reason}"),
            _ => debug!(%cluster, "{place}: {reason}"),
        }
    }

    /// What is to be made must not be there: an apply would take it over, whosever it is. An object that turned up
    /// since the watch last spoke is rare, but may be anybody's. Which are there, or can't be made for other reasons.
    async fn absent(&self, job: &Job) -> Result<HashMap<Place, Trouble>, Trouble> {
        let checks = job.changes.iter().enumerate().filter_map(|(at, change)| {
            let checked = is_new(&change.action) && !deleted_before(job, at, &change.action);
            checked.then(|| (&change.action, Place::of(&change.action)))
        });
        let checks = checks.map(|(action, place)| async move {
            let outcome = self.check_absent(action, &place).await;
            (place, outcome)
        });
        let mut there = HashMap::new();
        for (place, outcome) in join_all(checks).await {
            match outcome {
                Ok(()) => {}
                Err(trouble) if trouble.is_of_one() => drop(there.insert(place, trouble)),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(there)
    }

    async fn check_absent(&self, action: &Action, place: &Place) -> Result<(), Trouble> {
        self.by.may_write()?;
        match self.by.connection.find(&place.path(self.by.version)).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(Trouble::Conflict(format!("{place} is there, but was not known"))),
            Err(error) => Err(Trouble::of(&error, action, &place.to_string())),
        }
    }

    /// Owners that this job has made, with their uids.
    fn with_owners(&self, action: &Action) -> Result<Action, Trouble> {
        let mut action = action.clone();
        let owners: &mut [Owner] = match &mut action {
            Action::ApplyService(object) => &mut object.owners,
            Action::ApplySlice(object) => &mut object.owners,
            _ => &mut [],
        };
        for owner in owners.iter_mut().filter(|owner| owner.uid.is_none()) {
            let made = self.made.get(&owner.kind);
            let missing = || Trouble::Conflict(format!("its owner {} is not there", owner.name));
            owner.uid = Some(made.cloned().ok_or_else(missing)?);
        }
        Ok(action)
    }

    /// Takes in what answers said, as if a watch had.
    fn take(&mut self, seen: Vec<(Observed, u64)>) {
        for (object, version) in seen {
            match &object {
                Observed::Service(_, Some(it)) => drop(self.made.insert(OwnerKind::Service, it.meta.id.uid.clone())),
                Observed::Import(_, Some(it)) => drop(self.made.insert(OwnerKind::Import, it.meta.id.uid.clone())),
                _ => {}
            }
            self.seen.push((object, version));
        }
    }

    /// Tells people. Nothing hangs on it: an event that can't be recorded is missed.
    async fn tell(&self, job: &Job) {
        for (event, uid) in &job.events {
            let made = matches!(event.subject, Subject::Import(_)).then(|| self.made.get(&OwnerKind::Import)).flatten();
            let Some(uid) = uid.as_ref().or(made) else { continue };
            let write = events::record(event, uid, self.by.version);
            let meaning = |error: &WriteError| Trouble::Refused(error.to_string());
            if let Err(trouble) = self.by.send(write, "events", meaning).await {
                debug!(cluster = %self.by.cluster, "the event {} can't be recorded: {}", event.reason, trouble.message());
            }
        }
    }
}

fn is_new_slice(action: &Action) -> bool {
    matches!(action, Action::ApplySlice(object) if object.existing.is_none())
}

/// Whether an earlier change of the job deletes the object that this one makes.
fn deleted_before(job: &Job, at: usize, action: &Action) -> bool {
    let place = Place::of(action);
    job.changes.iter().take(at).any(|before| is_delete(&before.action) && Place::of(&before.action) == place)
}

/// The name that all slices of the same source begin with.
fn slice_base(action: &Action, place: &Place) -> String {
    let source = match action {
        Action::ApplySlice(object) => object.labels.get(api::LABEL_SOURCE_CLUSTER),
        _ => None,
    };
    let derived = place.name.get(..DERIVED_LENGTH).unwrap_or(&place.name);
    format!("{derived}-{}", source.map_or("", |source| source))
}

/// Whether it takes endpoints away that a slice was to have which could not be written.
fn hangs_on(failed: &[String], action: &Action, place: &Place) -> bool {
    matches!(action, Action::ApplySlice(_) | Action::DeleteSlice(..))
        && failed.iter().any(|base| place.name.starts_with(base.as_str()))
}

fn is_delete(action: &Action) -> bool {
    deleted(action).is_some()
}

/// What a delete is meant for.
fn deleted(action: &Action) -> Option<&Identity> {
    match action {
        Action::DeleteNamespace(_, id)
        | Action::DeleteExport(_, id)
        | Action::DeleteImport(_, id)
        | Action::DeleteService(_, id)
        | Action::DeleteSlice(_, _, id) => Some(id),
        _ => None,
    }
}

/// The absence of what a delete has removed. A namespace goes slowly: its watch says when.
fn absence(action: &Action, place: &Place) -> Option<Observed> {
    Some(match action {
        Action::DeleteExport(key, _) => Observed::Export(key.clone(), None),
        Action::DeleteImport(key, _) => Observed::Import(key.clone(), None),
        Action::DeleteService(key, _) => Observed::Service(key.clone(), None),
        Action::DeleteSlice(key, ..) => {
            let key = crate::model::SliceKey { namespace: key.namespace.clone(), name: place.name.clone() };
            Observed::Slice(key, None)
        }
        _ => return None,
    })
}
