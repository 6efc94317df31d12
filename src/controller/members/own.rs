//! The operator's own kubeconfigs: contexts, and a folder of files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::warn;

use super::hub::{Seen, Watch, What};
use super::identity::Claim;
use super::secrets::Candidate;
use super::{ContextMember, Origin};
use crate::source::kube::Access;
use crate::source::{Health, Trouble};

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The candidates of these contexts, as one full list.
pub(super) async fn contexts(contexts: Vec<ContextMember>, seen: mpsc::Sender<Seen>) {
    let candidates = contexts.into_iter().map(|member| {
        let key = (member.file.display().to_string(), member.context.clone());
        let candidate = Candidate {
            origin: Origin::Context { file: member.file.clone(), context: member.context.clone() },
            created: 0,
            claim: Claim { setting: member.id, fallback: None, remedy: "give it as --member CONTEXT=ID" },
            access: Ok(Access::Kubeconfig { file: member.file, context: Some(member.context) }),
        };
        What::Candidates(key, vec![candidate])
    });
    tell(Watch::Contexts, candidates, &seen).await;
}

/// The kubeconfigs in a folder, as they come and go: a file's name without what follows the first dot is the id. What is
/// in a file its connection watches.
pub(super) async fn folder(folder: PathBuf, health: Arc<Health<Watch>>, seen: mpsc::Sender<Seen>) {
    let mut told: Option<BTreeSet<PathBuf>> = None;
    let mut broken = false;
    while !seen.is_closed() {
        match files(&folder) {
            Ok(files) => {
                broken = false;
                if told.as_ref() != Some(&files) {
                    let candidates = files.iter().map(|file| What::Candidates(key(file), vec![candidate(file)]));
                    tell(Watch::Folder, candidates, &seen).await;
                    told = Some(files);
                }
                health.alive(Watch::Folder);
            }
            // A folder that can't be read says nothing about the members in it.
            Err(error) => {
                let message = format!(
                    "folder of kubeconfigs {}: {error}; members stay as they are until it can be read",
                    folder.display()
                );
                if !broken {
                    warn!("{message}");
                    broken = true;
                }
                health.down(Watch::Folder, Trouble::BrokenFile { message });
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn key(file: &Path) -> (String, String) {
    (String::new(), file.display().to_string())
}

fn candidate(file: &Path) -> Candidate {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let id = name.split('.').next().unwrap_or_default();
    Candidate {
        origin: Origin::File(file.to_owned()),
        created: 0,
        claim: Claim { setting: Some(id.to_owned()), fallback: None, remedy: "call the file <id>.kubeconfig" },
        access: Ok(Access::Kubeconfig { file: file.to_owned(), context: None }),
    }
}

/// The files in a folder. Names with a dot in front are not ours: editors' and Kubernetes' own (`..data`).
fn files(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with('.'));
        if !hidden && fs::metadata(&path).is_ok_and(|meta| meta.is_file()) {
            files.insert(path);
        }
    }
    Ok(files)
}

async fn tell(watch: Watch, candidates: impl Iterator<Item = What>, seen: &mpsc::Sender<Seen>) {
    let all = std::iter::once(What::Begin).chain(candidates).chain([What::End]);
    for what in all {
        if seen.send(Seen { watch, what }).await.is_err() {
            return;
        }
    }
}
