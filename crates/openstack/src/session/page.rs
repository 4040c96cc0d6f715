//! Pagination: follows the marker links of every service.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Session;
use crate::answer;
use crate::call::Call;
use crate::error::{Error, ErrorKind, Result};
use crate::service::Service;

/// Maximum of Nova, Cinder and Glance; Neutron and Octavia accept it.
const PAGE: &str = "1000";
/// Maximum number of pages; a longer list repeats itself.
const MOST_PAGES: usize = 1_000;
/// Maximum number of items of a list.
const MOST_ITEMS: usize = 200_000;
/// Maximum size of the pages of a list together, in bytes of text: about 50 000 servers, or 200 000 ports.
const LARGEST: usize = 128 << 20;

/// Items of a list, of any type.
trait Items: Send {
    fn add(&mut self, item: Value) -> Result<(), String>;
    fn len(&self) -> usize;
    fn clear(&mut self);
}

impl<T: DeserializeOwned + Send> Items for Vec<T> {
    fn add(&mut self, item: Value) -> Result<(), String> {
        self.push(answer::typed(item)?);
        Ok(())
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        self.clear();
    }
}

impl Session {
    /// Returns all items of a list. If the marker's object is deleted meanwhile, the list is restarted once.
    pub(crate) async fn list<T: DeserializeOwned + Send>(
        &self,
        call: Call,
        key: &str,
    ) -> Result<Vec<T>> {
        // Keystone has no pages, and its newer versions reject unknown parameters.
        let call = match call.service {
            Service::Identity => call,
            _ => call.query("limit", PAGE),
        };
        let mut all = Vec::new();
        self.fill(&mut all, call, key).await?;
        Ok(all)
    }

    /// Fetches all pages into `all`. Boxed, and the same for all types, so that the code is compiled once.
    fn fill<'a>(
        &'a self,
        all: &'a mut dyn Items,
        call: Call,
        key: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            match self.pages(all, call.clone(), key).await {
                Err((error, 1..))
                    if matches!(error.kind(), ErrorKind::Absent | ErrorKind::Invalid) =>
                {
                    all.clear();
                    self.pages(all, call, key).await.map_err(|(error, _)| error)
                }
                result => result.map_err(|(error, _)| error),
            }
        }
        .boxed()
    }

    async fn pages(
        &self,
        all: &mut dyn Items,
        mut call: Call,
        key: &str,
    ) -> Result<(), (Error, usize)> {
        let mut size = 0;
        for page in 0..MOST_PAGES {
            let protocol = |message: String| {
                let error = Error::new(ErrorKind::Protocol, message);
                (error.at(call.service, &call.method, &call.path), page)
            };
            let (mut value, length) = self
                .send_sized(call.clone())
                .await
                .map_err(|error| (error, page))?;
            size += length;
            let Some(Value::Array(items)) = value.get_mut(key).map(Value::take) else {
                return Err(protocol(format!("the answer has no list `{key}`")));
            };
            if all.len() + items.len() > MOST_ITEMS || size > LARGEST {
                return Err(protocol(format!(
                    "the list has more than {MOST_ITEMS} items or {} MiB",
                    LARGEST >> 20
                )));
            }
            let last = items.is_empty();
            for item in items {
                all.add(item).map_err(|error| {
                    protocol(format!("an item of `{key}` is not as expected: {error}"))
                })?;
            }
            match next_query(&value, key).filter(|_| !last) {
                None => return Ok(()),
                Some(next) if next == call.query => {
                    return Err(protocol("the next page is this page".to_owned()));
                }
                Some(next) => call.query = next,
            }
        }
        let error = Error::new(ErrorKind::Protocol, "the list does not end");
        Err((error.at(call.service, &call.method, &call.path), MOST_PAGES))
    }
}

/// Returns the query of the next page. Only the query of the link is used: behind a proxy, scheme and host are often
/// wrong.
fn next_query(value: &Value, key: &str) -> Option<Vec<(String, String)>> {
    let by_relation = |links: &Value| {
        links
            .as_array()?
            .iter()
            .find(|link| link.get("rel").and_then(Value::as_str) == Some("next"))?
            .get("href")?
            .as_str()
            .map(str::to_owned)
    };
    let link = value
        .get(format!("{key}_links"))
        .and_then(by_relation)
        .or_else(|| value.get("links")?.get("next")?.as_str().map(str::to_owned))
        .or_else(|| value.get("next")?.as_str().map(str::to_owned))?;
    let (_, query) = link.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    Some(query.split('&').filter_map(pair).collect())
}

fn pair(text: &str) -> Option<(String, String)> {
    let decode = |text: &str| {
        percent_encoding::percent_decode_str(&text.replace('+', " "))
            .decode_utf8()
            .ok()
            .map(|text| text.into_owned())
    };
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    (!key.is_empty()).then_some((decode(key)?, decode(value)?))
}
