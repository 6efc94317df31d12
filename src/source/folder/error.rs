//! What can be wrong with a file, for the person who wrote it.

use std::fmt;

/// A file that can't be read as Kubernetes objects: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The file, as a path below the folder's, or the folder itself.
    pub file: String,
    /// The line, counted from 1, where one is known.
    pub line: Option<u64>,
    /// What is wrong.
    pub problem: FileProblem,
}

impl FileError {
    pub(in crate::source) fn new(file: impl Into<String>, line: u64, problem: FileProblem) -> Self {
        Self { file: file.into(), line: (line > 0).then_some(line), problem }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for FileError {}

/// What is wrong with a file. `Display` says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// The folder is not there.
    #[error("there is no such folder; create it, or give another with --from")]
    NoFolder,
    /// The path is something else.
    #[error("this is not a folder; give the folder that holds the YAML files with --from")]
    NotAFolder,
    /// The operating system does not give it to us.
    #[error("can't be read ({0}); check its permissions and that it is still there")]
    Unreadable(String),
    /// Bytes that are no text.
    #[error("this is not UTF-8 text; save it as UTF-8")]
    NotUtf8,
    /// Neither YAML nor JSON.
    #[error("this is not valid {format}: {message}; correct it here or a few lines above")]
    Syntax {
        /// `YAML` or `JSON`.
        format: &'static str,
        /// What the parser says.
        message: String,
    },
    /// A document that is a list or a plain value.
    #[error(
        "this document is no Kubernetes object but {0}; write a mapping with apiVersion, kind and metadata, or move \
         the file out of the folder"
    )]
    NotAnObject(&'static str),
    /// A document that does not say what it is.
    #[error("this document has no {0}; add it, or move the file out of the folder if it holds no Kubernetes objects")]
    NoKind(&'static str),
    /// An object that does not say its name.
    #[error("this {0} has no metadata.name; add it")]
    NoName(&'static str),
    /// An object that is there twice, so that nobody can say which is meant.
    #[error("{object} is already in {first}; remove one of the two")]
    Duplicate {
        /// Kind, namespace and name.
        object: String,
        /// File and line of the first.
        first: String,
    },
    /// The folder of clusters is not there.
    #[error("there is no such folder; create it with a sub-folder for each cluster, or name another one")]
    NoClustersFolder,
    /// The folder of clusters is something else.
    #[error("this is not a folder; name the one that holds a sub-folder for each cluster")]
    NotAClustersFolder,
    /// A folder of clusters without any.
    #[error("there are no clusters in it: each sub-folder is one; make a sub-folder for each and put its YAML there")]
    NoClusters,
    /// A file that belongs to no cluster.
    #[error("this file is in no cluster: move it into the sub-folder of its cluster")]
    OutsideClusters,
    /// A sub-folder whose name can't be a cluster's.
    #[error("a cluster can't have this name; rename the folder: lower-case letters, digits and dashes, at most 63")]
    BadClusterName,
    /// An object that an API server would refuse.
    #[error("{object}: {what}")]
    Refused {
        /// Kind, namespace and name.
        object: String,
        /// What is wrong, and what to do.
        what: String,
    },
}
