//! One job, carried out: request by request, until one fails.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::sync::watch;
use tracing::{debug, info};

use super::place::Place;
use super::{Done, Job, Trouble, events, replace, request};
use crate::metrics::ControllerMetrics;
use crate::model::ClusterId;
use crate::reconcile::objects::{Identity, Owner, OwnerKind};
use crate::reconcile::plan::{Action, Subject};
use crate::reconcile::world::Kind;
use crate::source::kube::{Connection, Write, WriteError};
use crate::source::member::{self, Observed};

/// What is needed to write to one member.
#[derive(Clone)]
pub(in crate::controller) struct Applier {
    pub(in crate::controller) cluster: ClusterId,
    pub(in crate::controller) connection: Connection,
    /// The version of the Multi-Cluster Services API to write.
    pub(in crate::controller) version: &'static str,
    /// Whether we may write.
    pub(in crate::controller) leading: watch::Receiver<bool>,
    pub(in crate::controller) metrics: Arc<ControllerMetrics>,
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
    async fn all(&mut self, job: &Job) -> Result<(), Trouble> {
        self.absent(job).await?;
        for (at, change) in job.changes.iter().enumerate() {
            let place = Place::of(&change.action);
            let again = job
                .changes
                .iter()
                .take(at)
                .any(|before| Place::of(&before.action) == place && is_delete(&before.action));
            if again && is_new(&change.action) {
                self.check_absent(&change.action, &place).await?;
            }
            let action = self.with_owners(&change.action)?;
            self.one(&action, &place).await?;
            let cluster = &self.by.cluster;
            match &action {
                Action::ApplyImport(object) if object.existing.is_none() => {
                    info!(%cluster, "{} is imported: {}", job.target, change.reason);
                }
                Action::DeleteImport(..) => info!(%cluster, "{} is imported no more: {}", job.target, change.reason),
                Action::CreateNamespace(_) | Action::CreateExport(_) => {
                    info!(%cluster, "made {place}: {}", change.reason);
                }
                Action::DeleteNamespace(..) | Action::DeleteExport(..) => {
                    info!(%cluster, "deleted {place}: {}", change.reason);
                }
                _ => debug!(%cluster, "{place}: {}", change.reason),
            }
        }
        Ok(())
    }

    /// What is to be made must not be there: an apply would take it over, whosever it is. An object that turned up
    /// since the watch last spoke is rare, but may be anybody's.
    async fn absent(&self, job: &Job) -> Result<(), Trouble> {
        let deleted: Vec<_> =
            job.changes.iter().filter(|c| is_delete(&c.action)).map(|c| Place::of(&c.action)).collect();
        let checks = job.changes.iter().filter_map(|change| {
            let place = Place::of(&change.action);
            (is_new(&change.action) && !deleted.contains(&place)).then_some((&change.action, place))
        });
        let checks = checks.map(|(action, place)| async move { self.check_absent(action, &place).await });
        join_all(checks).await.into_iter().collect()
    }

    async fn check_absent(&self, action: &Action, place: &Place) -> Result<(), Trouble> {
        self.may_write()?;
        match self.by.connection.find(&place.path(self.by.version)).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(Trouble::Conflict(format!("{place} is there, but was not known"))),
            Err(error) => Err(Trouble::of(&error, action, &place.to_string())),
        }
    }

    fn may_write(&self) -> Result<(), Trouble> {
        if *self.by.leading.borrow() { Ok(()) } else { Err(Trouble::NotLeading) }
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

    async fn one(&mut self, action: &Action, place: &Place) -> Result<(), Trouble> {
        self.may_write()?;
        let Some(write) = request::of(action, place, self.by.version) else {
            return Err(Trouble::Refused(format!("{place} can't be written out; please report this")));
        };
        let status = matches!(action, Action::ApplyImportStatus(..) | Action::ApplyExportStatus(..));
        let resource = place.resource(status);
        if let Action::DeleteNamespace(..) = action {
            super::emptiness::check(&self.by.connection, &place.name).await?;
        }
        let meaning = |error: &WriteError| match error {
            WriteError::Refused(refusal) if is_delete(action) && refusal.code == 404 => Trouble::Gone,
            error => Trouble::of(error, action, &place.to_string()),
        };
        let answer = match self.by.send(write, resource, meaning).await {
            Ok(answer) => answer,
            Err(Trouble::Gone) => {
                self.gone(action, place);
                return Ok(());
            }
            Err(trouble) => return Err(trouble),
        };
        self.wrote = true;
        if is_delete(action) {
            self.gone(action, place);
            return Ok(());
        }
        let Some(object) = self.see(place.kind, &answer) else { return Ok(()) };
        let Some(difference) = replace::difference(action, &object) else { return Ok(()) };
        // Another manager has put something beside ours.
        let Some(patch) = replace::patch(action, &answer, self.by.version) else { return Ok(()) };
        self.may_write()?;
        let write = request::replace(place, self.by.version, status, &patch);
        let answer = self.by.send(write, resource, |error| Trouble::of(error, action, &place.to_string())).await?;
        match self.see(place.kind, &answer).and_then(|object| replace::difference(action, &object)) {
            None => Ok(()),
            Some(still) => Err(Trouble::Refused(format!(
                "{place}: {difference}, and after it was replaced still: {still}; an admission webhook of the cluster may \
                 change it: exempt objects with the label app.kubernetes.io/managed-by=namesake from it"
            ))),
        }
    }

    /// Takes an answer in as if a watch had said it.
    fn see(&mut self, kind: Kind, answer: &str) -> Option<Observed> {
        let object = member::observed(kind, answer).ok()?.object;
        let (id, owner) = match &object {
            Observed::Namespace(_, Some(it)) => (&it.meta.id, None),
            Observed::Export(_, Some(it)) => (&it.meta.id, None),
            Observed::Service(_, Some(it)) => (&it.meta.id, Some(OwnerKind::Service)),
            Observed::Import(_, Some(it)) => (&it.meta.id, Some(OwnerKind::Import)),
            Observed::Slice(_, Some(it)) => (&it.meta.id, None),
            _ => return None,
        };
        if let Some(owner) = owner {
            self.made.insert(owner, id.uid.clone());
        }
        let version = id.resource_version.parse().unwrap_or(0);
        self.seen.push((object.clone(), version));
        Some(object)
    }

    /// Takes a deletion in: whatever a watch may still say of that version or an older one is old.
    fn gone(&mut self, action: &Action, place: &Place) {
        let (Some(id), Some(absent)) = (deleted(action), absence(action, place)) else { return };
        let version = id.resource_version.parse().map_or(0, |version: u64| version.saturating_add(1));
        self.seen.push((absent, version));
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

/// Whether it makes an object that must not be there yet.
fn is_new(action: &Action) -> bool {
    match action {
        Action::ApplyImport(object) => object.existing.is_none(),
        Action::ApplyService(object) => object.existing.is_none(),
        Action::ApplySlice(object) => object.existing.is_none(),
        _ => false,
    }
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
