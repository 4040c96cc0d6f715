//! Accounts in RabbitMQ, by its management API.

use deployer::{AccountPlan, AccountWrite, Broker, BrokerSeen};
use http::Method;
use serde_json::Value;

use super::method;
use crate::reach::{Port, Sent};

/// Management API of RabbitMQ.
pub(super) struct Management<'a> {
    pub(super) port: Port<'a>,
    pub(super) broker: &'a Broker,
}

impl Management<'_> {
    /// Reads the lists of [`Broker::LISTS`], and plans.
    pub(super) async fn plan(&mut self) -> Result<AccountPlan, String> {
        let mut lists = [Value::Null, Value::Null, Value::Null];
        for (list, path) in lists.iter_mut().zip(Broker::LISTS) {
            let doing = format!("reading {path}");
            let body = self.ask(&Method::GET, path, None, &doing).await?;
            let read = serde_json::from_slice(&body);
            *list = read.map_err(|_| format!("RabbitMQ: {path} has not answered with JSON"))?;
        }
        Ok(self.broker.plan(&BrokerSeen::read(lists)?))
    }

    /// Sends the writes one after another: RabbitMQ keeps the connection.
    pub(super) async fn write(&mut self, writes: &[AccountWrite]) -> Result<(), String> {
        for write in writes {
            let body = write.body.as_ref().map(deployer::Password::expose);
            let method = method(write)?;
            self.ask(&method, &write.path, body, &write.doing).await?;
        }
        Ok(())
    }

    /// Answer to a request that succeeds, or was done before.
    async fn ask(
        &mut self,
        method: &Method,
        path: &str,
        body: Option<&str>,
        doing: &str,
    ) -> Result<Vec<u8>, String> {
        let login = self.broker.authorization();
        let sent = Sent {
            method,
            path,
            login: Some(("authorization", login.expose())),
            body,
        };
        let answer = self.port.send(&sent).await;
        let answer = answer.map_err(|why| format!("RabbitMQ: {doing}: {why}"))?;
        let gone = *method == Method::DELETE && answer.status == 404;
        if answer.status.is_success() || gone {
            return Ok(answer.body.to_vec());
        }
        let advice = match answer.status.as_u16() {
            401 => format!(". {}", Broker::advice()),
            _ => String::new(),
        };
        let (status, words) = (answer.status.as_u16(), words(&answer.body));
        Err(format!(
            "RabbitMQ: {doing}: answered with {status}{words}{advice}"
        ))
    }
}

/// Message of an error in an answer.
fn words(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let parts = [&answer["error"], &answer["reason"]];
    let parts = parts.into_iter().filter_map(Value::as_str);
    parts.map(|part| format!(": {part}")).collect()
}
