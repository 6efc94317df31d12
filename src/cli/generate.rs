//! `namesake generate`: what can be made of the program itself.

use clap::{Args as ClapArgs, Subcommand};
use serde_json::Value;

use super::{Exit, complain, print};
use crate::api::crd;

pub(super) const ABOUT: &str = "\
Write to stdout what can be made of this program itself, so that it always fits its version.";

pub(super) const EXAMPLES: &str = "\
Examples:
  namesake generate crds | kubectl apply --server-side -f -      the CRDs of the Multi-Cluster Services API

Exit codes:
  0  written
  1  stdout could not be written to
  2  flags are wrong";

/// The arguments.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// The CRDs of ServiceExport and ServiceImport, as YAML
    Crds,
}

/// Writes it.
pub(super) fn command(args: &Args) -> Exit {
    let text = match args.what {
        What::Crds => yaml(&crd::all()),
    };
    match text {
        Ok(text) => print(&text),
        Err(error) => {
            complain(&format_args!("{error}; please report this"));
            Exit::Failure
        }
    }
}

/// Documents of YAML, each with a line that says where it comes from.
fn yaml(objects: &[Value]) -> Result<String, String> {
    let mut documents = Vec::new();
    for object in objects {
        let text = serde_saphyr::to_string(object).map_err(|error| error.to_string())?;
        documents
            .push(format!("# Made by `namesake generate crds` from the types in src/api; not to be edited.\n{text}"));
    }
    Ok(documents.join("---\n"))
}
