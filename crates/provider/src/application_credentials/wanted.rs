//! The request of a user, in annotations of an OpenStackCluster.

use api::infra::v1beta2::OpenStackCluster;
use api::k8s_openapi::jiff::SignedDuration;
use api::names::{
    APPLICATION_CREDENTIALS_ANNOTATION as PROGRAMS,
    APPLICATION_CREDENTIALS_LIFETIME_ANNOTATION as LIFETIME,
};
use cloud_conf::Program;
use kube::ResourceExt;

/// All programs that can have a credential.
pub(super) const ALL: [Program; 2] = [Program::CloudControllerManager, Program::CinderCsi];

/// Default lifetime of a credential, in hours.
const USUAL: i64 = 30 * 24;
/// Limits of the lifetime of a credential, in hours.
const SHORTEST: i64 = 6;
const LONGEST: i64 = 366 * 24;

/// Programs with a credential of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    programs: Vec<Program>,
    /// Lifetime of each credential.
    pub(super) lifetime: SignedDuration,
}

impl Wanted {
    /// No credential for any program.
    pub(super) fn nothing() -> Self {
        Self {
            programs: Vec::new(),
            lifetime: SignedDuration::from_hours(USUAL),
        }
    }

    /// The request in the annotations of `object`.
    ///
    /// # Errors
    /// Text of the problem with an annotation.
    pub(super) fn of(object: &OpenStackCluster) -> Result<Self, String> {
        let text = |name| object.annotations().get(name).map(String::as_str);
        let entries = text(PROGRAMS).unwrap_or_default().split(',');
        let entries = entries.map(str::trim).filter(|entry| !entry.is_empty());
        let mut programs = Vec::new();
        for entry in entries {
            let found = ALL.into_iter().find(|program| word(*program) == entry);
            let program = found.ok_or_else(|| {
                let known = ALL.map(word).join(", ");
                format!("metadata.annotations[{PROGRAMS}]: `{entry}` is none of {known}")
            })?;
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        Ok(Self {
            programs,
            lifetime: lifetime(text(LIFETIME))?,
        })
    }

    /// True if `program` shall have a credential.
    pub(super) fn has(&self, program: Program) -> bool {
        self.programs.contains(&program)
    }

    /// True if no program shall have a credential.
    pub(super) fn is_nothing(&self) -> bool {
        self.programs.is_empty()
    }
}

/// The name of a program: that of its command, and the value in the annotation.
pub(super) fn word(program: Program) -> &'static str {
    match program {
        Program::CloudControllerManager => "cloud-controller-manager",
        Program::CinderCsi => "cinder-csi-plugin",
    }
}

fn lifetime(text: Option<&str>) -> Result<SignedDuration, String> {
    let Some(text) = text.map(str::trim) else {
        return Ok(SignedDuration::from_hours(USUAL));
    };
    let hours = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => days.parse::<i64>().ok().and_then(|it| it.checked_mul(24)),
        (_, Some(hours)) => hours.parse::<i64>().ok(),
        _ => None,
    };
    let hours = hours.filter(|hours| (SHORTEST..=LONGEST).contains(hours));
    hours.map(SignedDuration::from_hours).ok_or_else(|| {
        format!(
            "metadata.annotations[{LIFETIME}]: `{text}` is no number of hours or days between {SHORTEST}h and {}d, such as \
             720h or 30d",
            LONGEST / 24
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(annotations: &[(&str, &str)]) -> OpenStackCluster {
        let spec = json!({"identityRef": {"name": "s", "cloudName": "c"}});
        let mut object = OpenStackCluster::new("demo", serde_json::from_value(spec).unwrap());
        for (name, value) in annotations {
            let annotations = object.annotations_mut();
            annotations.insert((*name).to_owned(), (*value).to_owned());
        }
        object
    }

    #[test]
    fn annotations_name_programs_and_a_lifetime() {
        let none = Wanted::of(&cluster(&[])).unwrap();
        assert!(none.is_nothing());
        let both = " cinder-csi-plugin, cloud-controller-manager,";
        let both = Wanted::of(&cluster(&[(PROGRAMS, both), (LIFETIME, "2d")])).unwrap();
        assert!(ALL.into_iter().all(|program| both.has(program)));
        assert_eq!(both.lifetime, SignedDuration::from_hours(48));
    }

    #[test]
    fn a_wrong_annotation_is_a_problem_with_its_name_and_what_there_is() {
        let error = Wanted::of(&cluster(&[(PROGRAMS, "csi")])).unwrap_err();
        assert!(error.contains(PROGRAMS) && error.contains("cinder-csi-plugin"));
        for text in ["", "1h", "400d", "30", "-3d", "99999999999999999d", "x"] {
            let error = Wanted::of(&cluster(&[(LIFETIME, text)])).unwrap_err();
            assert!(error.contains(LIFETIME) && error.contains("30d"), "{error}");
        }
    }
}
