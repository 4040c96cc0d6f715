//! Plan of a login for the cluster: the namespace of the project, and a RoleBinding for each role.

use sha2::{Digest as _, Sha256};

use super::{Config, DataType};
use crate::subject::{PROJECT_ID, PROJECT_NAME, Subject, USER_DOMAIN_ID};

/// Maximum length of the name of a namespace, and of a RoleBinding.
const NAMESPACE: usize = 63;
const NAME: usize = 253;

/// Required objects after a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Namespace of the project.
    pub namespace: String,
    /// True if a missing namespace is created.
    pub create: bool,
    /// Id of the project.
    pub project_id: String,
    /// [`Bindings`] of the user; `None` if not managed.
    pub bindings: Option<Bindings>,
}

/// RoleBindings of a user in the namespace of a project: all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bindings {
    /// Id of the user.
    pub user_id: String,
    /// Name of the user, without mappings of roles.
    pub user: String,
    /// ClusterRoles, named like the roles in Keystone.
    pub roles: Vec<String>,
}

/// RoleBinding in the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name.
    pub name: String,
    /// Id of the user, if created here; `None` for a RoleBinding of others.
    pub of_user: Option<String>,
    /// ClusterRole; `None` for a Role.
    pub role: Option<String>,
    /// User, for a single subject of this kind.
    pub user: Option<String>,
}

/// Changes from the existing to the required RoleBindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names of RoleBindings to delete.
    pub delete: Vec<String>,
    /// RoleBindings to create: the name, and the ClusterRole.
    pub create: Vec<(String, String)>,
    /// Names taken by RoleBindings of others.
    pub taken: Vec<String>,
}

/// Plan of a login; `None` if there is nothing to do.
///
/// # Errors
/// The name of the project fits no namespace.
pub fn wanted(config: &Config, user: &Subject) -> Result<Option<Wanted>, String> {
    let value = |key: &str| {
        let values = user.extra.as_ref().and_then(|extra| extra.get(key));
        values
            .and_then(|values| values.first())
            .map_or("", String::as_str)
    };
    let (id, name) = (value(PROJECT_ID), value(PROJECT_NAME));
    let is_left_out = config.projects_blacklist.iter().any(|it| it == id)
        || config.projects_name_blacklist.iter().any(|it| it == name);
    if id.is_empty() || is_left_out || config.data_types_to_sync.is_empty() {
        return Ok(None);
    }
    let syncs = |what| config.data_types_to_sync.contains(&what);
    let mut roles = user.roles().to_vec();
    roles.sort();
    roles.dedup();
    let namespace = namespace(&config.namespace_format, id, name, value(USER_DOMAIN_ID));
    Ok(Some(Wanted {
        namespace: namespace.ok_or_else(|| {
            format!(
                "the project {} has no name for a namespace",
                id.escape_debug()
            )
        })?,
        create: syncs(DataType::Projects),
        project_id: id.to_owned(),
        bindings: syncs(DataType::RoleAssignments).then(|| Bindings {
            user_id: user.uid.clone(),
            user: user.name.clone(),
            roles,
        }),
    }))
}

impl Bindings {
    /// Compares with the RoleBindings of the namespace. RoleBindings of other users and of others are left alone,
    /// except for the ones that the Go program created for this user.
    pub fn changes(&self, existing: &[Binding]) -> Changes {
        let mut changes = Changes::default();
        for it in existing.iter().filter(|it| self.is_ours(it)) {
            if !self.roles.iter().any(|role| self.is(it, role)) {
                changes.delete.push(it.name.clone());
            }
        }
        for role in &self.roles {
            let name = self.name(role);
            match existing.iter().find(|it| it.name == name) {
                Some(it) if self.is(it, role) => {}
                Some(it) if !self.is_ours(it) => changes.taken.push(name),
                // Its deletion is part of the changes, because role or user differ.
                _ => changes.create.push((name, role.clone())),
            }
        }
        changes
    }

    fn is(&self, it: &Binding, role: &str) -> bool {
        it.name == self.name(role)
            && it.role.as_deref() == Some(role)
            && it.user.as_ref() == Some(&self.user)
    }

    fn is_ours(&self, it: &Binding) -> bool {
        match &it.of_user {
            Some(user) => *user == self.user_id,
            None => {
                let role = it
                    .name
                    .strip_prefix(&self.user_id)
                    .and_then(|rest| rest.strip_prefix('_'));
                role.is_some() && role == it.role.as_deref() && it.user.is_some()
            }
        }
    }

    /// Name in the form of the Go program, or a valid one.
    fn name(&self, role: &str) -> String {
        let name = format!("{}_{role}", self.user_id);
        let is_one =
            !name.contains(['/', '%']) && name.len() <= NAME && !name.chars().any(char::is_control);
        if is_one {
            return name;
        }
        let is_plain =
            |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let start: String = name.chars().filter(is_plain).take(180).collect();
        let digest = Sha256::digest(name.as_bytes());
        let digits: String = digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{start}-{digits}")
    }
}

/// Name by the format, made valid for a namespace; from the id alone if too long, as in Go.
fn namespace(format: &str, id: &str, name: &str, domain_id: &str) -> Option<String> {
    let mut filled = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        filled.push_str(before);
        filled.push_str(match after.chars().next() {
            Some('i') => id,
            Some('n') => name,
            Some('d') => domain_id,
            _ => return None,
        });
        rest = after.get(1..).unwrap_or_default();
    }
    filled.push_str(rest);
    let filled = valid(&filled);
    let chosen = match filled.len() > NAMESPACE {
        true => valid(id),
        false => filled,
    };
    // Without the complete id, another project could have the same name.
    let is_whole = chosen.contains(&valid(id)) && valid(id).len() == id.len();
    (is_whole && !chosen.is_empty() && chosen.len() <= NAMESPACE).then_some(chosen)
}

fn valid(text: &str) -> String {
    let small = text.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' | '-' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => '-',
    });
    let small: String = small.collect();
    small.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::subject::ROLES;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn alice(project: &str, roles: &[&str]) -> Subject {
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let extra = [
            (PROJECT_ID, texts(&[ID])),
            (PROJECT_NAME, texts(&[project])),
            (USER_DOMAIN_ID, texts(&["default"])),
            (ROLES, texts(roles)),
        ];
        Subject {
            name: "alice".to_owned(),
            uid: "u1".to_owned(),
            groups: Vec::new(),
            extra: Some(
                extra
                    .into_iter()
                    .map(|(key, values)| (key.to_owned(), values))
                    .collect(),
            ),
        }
    }

    fn config(more: &str) -> Config {
        Config::parse(&format!(
            "data-types-to-sync: [projects, role_assignments]\n{more}"
        ))
        .unwrap()
    }

    #[test]
    fn namespaces_are_named_by_the_format_and_always_by_the_id() {
        let long = "x".repeat(40);
        for (format, project, expected) in [
            ("%i", "demo", ID.to_owned()),
            ("p-%n-%i", "demo", format!("p-demo-{ID}")),
            ("%d.%i", "demo", format!("default-{ID}")),
            ("%n_%i", "My Project", format!("my-project-{ID}")),
            ("%n-%i", "%d", format!("d-{ID}")),
            ("%n-%i", "/", ID.to_owned()),
            ("-%i_", "demo", ID.to_owned()),
            ("%n-%i", &long, ID.to_owned()),
        ] {
            let config = config(&format!("namespace-format: \"{format}\"\n"));
            let wanted = wanted(&config, &alice(project, &[])).unwrap().unwrap();
            assert_eq!(wanted.namespace, expected, "{format} {project}");
        }
        let mut odd = alice("demo", &[]);
        odd.extra
            .as_mut()
            .unwrap()
            .insert(PROJECT_ID.to_owned(), vec!["-/-".to_owned()]);
        assert!(wanted(&config(""), &odd).is_err());
    }

    #[test]
    fn projects_of_the_black_lists_and_users_without_a_project_are_left_out() {
        let nothing = |config: &Config, user: &Subject| wanted(config, user).unwrap().is_none();
        let user = alice("demo", &["member"]);
        assert!(nothing(&Config::default(), &user));
        assert!(nothing(
            &config(&format!("projects-blacklist: [\"{ID}\"]\n")),
            &user
        ));
        assert!(nothing(&config("projects-name-blacklist: [demo]\n"), &user));
        assert!(nothing(&config(""), &Subject::default()));
        let both = wanted(&config(""), &user).unwrap().unwrap();
        assert!(both.create && both.bindings.is_some());
        let projects = Config::parse("data-types-to-sync: [projects]").unwrap();
        assert_eq!(wanted(&projects, &user).unwrap().unwrap().bindings, None);
    }

    fn bindings(roles: &[&str]) -> Bindings {
        let user = alice("demo", roles);
        wanted(&config(""), &user)
            .unwrap()
            .unwrap()
            .bindings
            .unwrap()
    }

    fn binding(name: &str, of_user: Option<&str>, role: &str, user: &str) -> Binding {
        Binding {
            name: name.to_owned(),
            of_user: of_user.map(str::to_owned),
            role: Some(role.to_owned()),
            user: Some(user.to_owned()),
        }
    }

    #[test]
    fn roles_become_bindings_and_lost_ones_go() {
        let existing = [
            binding("u1_reader", Some("u1"), "reader", "alice"),
            binding("u1_lost", Some("u1"), "lost", "alice"),
            // Of the Go program.
            binding("u1_old", None, "old", "alice"),
            // Of others.
            binding("u2_member", Some("u2"), "member", "bob"),
            binding("u1_mine", None, "cluster-admin", "alice"),
            binding("operators", None, "lost", "alice"),
            binding("u1_taken", None, "other", "carol"),
        ];
        let changes = bindings(&["reader", "member", "taken", "member"]).changes(&existing);
        assert_eq!(changes.delete, ["u1_lost", "u1_old"]);
        assert_eq!(
            changes.create,
            [("u1_member".to_owned(), "member".to_owned())]
        );
        assert_eq!(changes.taken, ["u1_taken"]);
        // A user that has another name now.
        let changes =
            bindings(&["reader"]).changes(&[binding("u1_reader", Some("u1"), "reader", "al")]);
        assert_eq!(changes.delete, ["u1_reader"]);
        assert_eq!(
            changes.create,
            [("u1_reader".to_owned(), "reader".to_owned())]
        );
    }

    proptest! {
        #[test]
        fn changes_that_are_made_leave_nothing_to_change(
            roles in proptest::collection::vec("[a-c%/ .]{1,3}", 0..4),
            earlier in proptest::collection::vec("[a-c%/ .]{1,3}", 0..4),
        ) {
            let texts = |roles: &[String]| bindings(&roles.iter().map(String::as_str).collect::<Vec<_>>());
            let (before, after) = (texts(&earlier), texts(&roles));
            let mut existing = vec![binding("other", None, "a", "bob")];
            for bindings in [&before, &after] {
                let changes = bindings.changes(&existing);
                existing.retain(|it| !changes.delete.contains(&it.name));
                let created = changes.create.iter().map(|(name, role)| binding(name, Some("u1"), role, "alice"));
                existing.extend(created);
                prop_assert_eq!(bindings.changes(&existing), Changes::default());
                prop_assert_eq!(existing.len(), bindings.roles.len() + 1);
            }
            let names = existing.iter().all(|it| !it.name.contains(['/', '%']) && it.name.len() <= NAME);
            prop_assert!(names);
        }

        #[test]
        fn a_name_of_a_namespace_is_one_and_has_the_id(format in "[a-zA-Z0-9_.-]{0,20}(%n|%d|)%i(%n|[a-z-]{0,9})", project in ".{0,30}") {
            let name = namespace(&format, ID, &project, "default").unwrap();
            prop_assert!(name.contains(ID) && name.len() <= NAMESPACE);
            let is_one = name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
            prop_assert!(is_one && !name.starts_with('-') && !name.ends_with('-'), "{}", name);
        }
    }
}
