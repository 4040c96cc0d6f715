use num_bigint_dig::BigUint;
use num_bigint_dig::prime::probably_prime;
use proptest::prelude::*;
use rsa::traits::{PrivateKeyParts, PublicKeyParts};

use super::{BOUND, SMALL_PRIMES, WINDOW, candidates, generate};

#[test]
fn the_small_primes_are_all_odd_primes_below_the_bound() {
    assert_eq!(SMALL_PRIMES[..6], [3, 5, 7, 11, 13, 17]);
    // There are 6542 primes below 65536, and 2 is one of them.
    assert_eq!(SMALL_PRIMES.len(), 6541);
    assert!(SMALL_PRIMES.iter().all(|prime| *prime < BOUND as u64));
}

#[test]
fn a_key_has_the_size_that_was_asked_for_and_two_primes_of_half_of_it() {
    let key = generate(2048).unwrap();
    assert_eq!(key.n().bits(), 2048);
    assert_eq!(key.e(), &BigUint::from(65_537_u32));
    key.validate().unwrap();
    for prime in key.primes() {
        assert_eq!(prime.bits(), 1024);
        assert!(probably_prime(prime, 20));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn the_sieve_keeps_what_no_small_prime_divides_and_nothing_else(start in (1_u64 << 40)..(1_u64 << 62)) {
        let start = start | 1;
        let kept: Vec<u64> = candidates(&BigUint::from(start)).collect();
        let expected: Vec<u64> = (0..WINDOW as u64)
            .map(|at| 2 * at)
            .filter(|offset| SMALL_PRIMES.iter().all(|prime| !(start + offset).is_multiple_of(*prime)))
            .collect();
        prop_assert_eq!(kept, expected);
    }
}
