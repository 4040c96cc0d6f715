//! Keystone v3.

mod bootstrap;
mod catalog;
mod credentials;
mod directory;
mod tokens;
mod trusts;

use http::Method;

use super::route::{Access, Routes};
use super::service::Service;

pub(crate) use self::bootstrap::Bootstrap;
pub(crate) use self::bootstrap::{bootstrap, operator};
pub(crate) use self::catalog::seed as seed_catalog;
pub(crate) use self::directory::{assignment_doc, project_doc, role_doc, user_doc};
pub(crate) use self::tokens::{authenticate, hashed, project_of};

/// The route of tokens, which does not count as a write.
pub(crate) const TOKENS: &str = "/v3/auth/tokens";

/// Keystone's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Identity);
    table
        .on(Method::POST, TOKENS, Access::Open, tokens::issue)
        .on(Method::GET, TOKENS, Access::Token, tokens::show)
        .on(Method::DELETE, TOKENS, Access::Token, tokens::revoke)
        .on(
            Method::GET,
            "/v3/auth/catalog",
            Access::Token,
            tokens::show_catalog,
        )
        .on(
            Method::GET,
            "/v3/auth/projects",
            Access::Token,
            directory::projects_of_user,
        )
        .on(
            Method::GET,
            "/v3/auth/domains",
            Access::Token,
            directory::domains_of_caller,
        )
        .on(
            Method::GET,
            "/v3/users/{user_id}/projects",
            Access::Token,
            directory::projects_of_user,
        )
        .on(
            Method::GET,
            "/v3/domains",
            Access::Token,
            directory::domains,
        )
        .on(
            Method::GET,
            "/v3/domains/{id}",
            Access::Token,
            directory::domain,
        )
        .on(
            Method::GET,
            "/v3/projects",
            Access::Token,
            directory::projects,
        )
        .on(
            Method::POST,
            "/v3/projects",
            Access::Admin,
            directory::create_project,
        )
        .on(
            Method::GET,
            "/v3/projects/{id}",
            Access::Token,
            directory::project,
        )
        .on(
            Method::PATCH,
            "/v3/projects/{id}",
            Access::Admin,
            directory::update_project,
        )
        .on(
            Method::DELETE,
            "/v3/projects/{id}",
            Access::Admin,
            directory::delete_project,
        )
        .on(Method::GET, "/v3/users", Access::Token, directory::users)
        .on(
            Method::POST,
            "/v3/users",
            Access::Admin,
            directory::create_user,
        )
        .on(
            Method::GET,
            "/v3/users/{id}",
            Access::Token,
            directory::user,
        )
        .on(
            Method::PATCH,
            "/v3/users/{id}",
            Access::Admin,
            directory::update_user,
        )
        .on(
            Method::DELETE,
            "/v3/users/{id}",
            Access::Admin,
            directory::delete_user,
        )
        .on(Method::GET, "/v3/roles", Access::Token, directory::roles)
        .on(
            Method::POST,
            "/v3/roles",
            Access::Admin,
            directory::create_role,
        )
        .on(
            Method::DELETE,
            "/v3/roles/{id}",
            Access::Admin,
            directory::delete_role,
        )
        .on(
            Method::GET,
            "/v3/roles/{id}",
            Access::Token,
            directory::role,
        )
        .on(
            Method::GET,
            "/v3/role_assignments",
            Access::Token,
            directory::assignments,
        )
        .on(
            Method::PUT,
            "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}",
            Access::Admin,
            directory::grant,
        )
        .on(
            Method::DELETE,
            "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}",
            Access::Admin,
            directory::withdraw,
        );
    let many = "/v3/users/{user_id}/application_credentials";
    let one = "/v3/users/{user_id}/application_credentials/{id}";
    table
        .on(Method::GET, many, Access::Token, credentials::list)
        .on(Method::POST, many, Access::Token, credentials::create)
        .on(Method::GET, one, Access::Token, credentials::show)
        .on(Method::DELETE, one, Access::Token, credentials::delete);
    catalog::routes(&mut table);
    trusts::routes(&mut table);
}
