//! Pages of volumes and snapshots.

use grpc::{Code, Status};

/// Page of `items`, sorted by key, and the token of the next page; empty for the last.
///
/// A token is the key of the last item of its page. So paging goes on at the same place after insertions and deletions.
pub(crate) fn page<T>(
    items: Vec<(String, T)>,
    most: i32,
    token: &str,
) -> Result<(Vec<T>, String), Status> {
    let Ok(most) = usize::try_from(most) else {
        let message = format!("max_entries is {most}: it is not negative");
        return Err(Status::new(Code::InvalidArgument, message));
    };
    if !token.is_empty() && !is_token(token) {
        let message = "starting_token is not one of this driver: begin again without it";
        return Err(Status::new(Code::Aborted, message));
    }
    let most = if most == 0 { usize::MAX } else { most };
    let mut rest = items.into_iter().filter(|(key, _)| key.as_str() > token);
    let (mut page, mut last) = (Vec::new(), String::new());
    for (key, item) in rest.by_ref().take(most) {
        page.push(item);
        last = key;
    }
    let next = if rest.next().is_some() {
        last
    } else {
        String::new()
    };
    Ok((page, next))
}

/// Key of an item: cloud and id.
pub(crate) fn key(cloud: &str, id: &str) -> String {
    format!("{cloud}:{id}")
}

fn is_token(token: &str) -> bool {
    token.rsplit_once(':').is_some_and(|(_, id)| {
        !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items(count: usize) -> Vec<(String, usize)> {
        (0..count)
            .map(|it| (key("a", &format!("{it:04}")), it))
            .collect()
    }

    #[test]
    fn a_token_of_somebody_else_is_refused() {
        for token in ["x", "1000", ":", "a:b c", "\n", "a:é"] {
            let refused = page(items(3), 0, token).unwrap_err();
            assert_eq!(refused.code, Code::Aborted, "{token}");
        }
        assert_eq!(
            page(items(3), -1, "").unwrap_err().code,
            Code::InvalidArgument
        );
    }

    proptest! {
        #[test]
        fn pages_together_are_the_list(count in 0usize..50, most in 0i32..60) {
            let (mut all, mut token) = (Vec::new(), String::new());
            for _ in 0..100 {
                let (page, next) = page(items(count), most, &token).unwrap();
                prop_assert!(most == 0 || page.len() <= most as usize);
                all.extend(page);
                token = next;
                if token.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
