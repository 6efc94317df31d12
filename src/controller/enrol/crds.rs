//! CRDs where they are absent or older; never a step back, and never a deletion.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::Say;
use super::api::{Cluster, EnrolError};
use crate::api::crd::{self, Installed};

/// How long an API server may take to serve a new CRD.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sees to it that the CRDs are there, and says what it did.
pub(super) async fn install(cluster: &Cluster, say: &mut Say<'_>) -> Result<(), EnrolError> {
    for ours in crd::all() {
        let name = ours["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let told = match cluster.get(&path).await?.as_ref().map(crd::compare) {
            None => {
                cluster.apply(&path, &ours).await?;
                format!("created, {}", crd::RELEASE)
            }
            Some(Installed::Older(theirs)) => {
                cluster.apply(&path, &ours).await?;
                format!("brought from {theirs} to {}", crd::RELEASE)
            }
            Some(Installed::Same) => "unchanged".to_owned(),
            Some(Installed::Newer(theirs)) => format!("left as it is, it is newer ({theirs})"),
        };
        wait(cluster, &path, &name).await?;
        say(&format!("{}: CRD {name}: {told}", cluster.name));
    }
    Ok(())
}

/// Until the API server has taken it up.
async fn wait(cluster: &Cluster, path: &str, name: &str) -> Result<(), EnrolError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let crd = cluster.get(path).await?.unwrap_or_default();
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is =
            |condition: &Value, kind: &str, status: &str| condition["type"] == kind && condition["status"] == status;
        if conditions.iter().any(|c| is(c, "Established", "True")) {
            return Ok(());
        }
        if let Some(refused) = conditions.iter().find(|c| is(c, "NamesAccepted", "False")) {
            let why = refused["message"].as_str().unwrap_or_default();
            let message =
                format!("CRD {name} can't be served: {why}; remove what has these names, and repeat the command");
            return Err(EnrolError::refused(cluster, message));
        }
        if Instant::now() > end {
            let message = format!("CRD {name} is not served after {} s; repeat the command", PATIENCE.as_secs());
            return Err(EnrolError::refused(cluster, message));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
