//! RSA keys whose primes are searched for with a sieve.
//!
//! The crate `rsa` takes candidates as they come, and nearly each of them costs an exponentiation. A sieve by the small primes,
//! as in OpenSSL, leaves a third of them (docs/adr/0018).

use std::sync::LazyLock;

use num_bigint_dig::prime::probably_prime;
use num_bigint_dig::{BigUint, RandBigInt};
use rsa::RsaPrivateKey;
use rsa::rand_core::OsRng;

/// The public exponent that everybody uses.
const EXPONENT: u32 = 65_537;
/// The sieve knows the odd primes below this.
const BOUND: usize = 1 << 16;
/// How many odd numbers are sieved at once: many times the distance from one prime of 2048 bits to the next.
const WINDOW: usize = 1 << 13;
/// Rounds of Miller and Rabin's test, besides one of Lucas': FIPS 186-5 (table B.1) asks for 5 where primes have 1024 bits, and for
/// fewer where they have more.
const ROUNDS: usize = 5;

static SMALL_PRIMES: LazyLock<Vec<u64>> = LazyLock::new(small_primes);

/// A new key of `bits` bits, at least 2048.
pub(super) fn generate(bits: usize) -> rsa::Result<RsaPrivateKey> {
    let (p, q) = (prime(bits / 2), prime(bits / 2));
    RsaPrivateKey::from_p_q(p, q, BigUint::from(EXPONENT))
}

/// A prime of exactly `bits` bits, two of which make a modulus of twice as many.
fn prime(bits: usize) -> BigUint {
    let (one, two) = (BigUint::from(1_u8), BigUint::from(2_u8));
    loop {
        let start = OsRng.gen_biguint(bits) | (BigUint::from(3_u8) << (bits - 2)) | &one;
        for offset in candidates(&start) {
            let candidate = &start + BigUint::from(offset);
            if candidate.bits() != bits {
                break;
            }
            let invertible = &candidate % EXPONENT != one;
            // Fermat's test first: it is the cheapest, and very few pass it in vain.
            if invertible
                && two.modpow(&(&candidate - &one), &candidate) == one
                && probably_prime(&candidate, ROUNDS)
            {
                return candidate;
            }
        }
    }
}

/// The offsets from `start`, an odd number, at which no small prime divides.
fn candidates(start: &BigUint) -> impl Iterator<Item = u64> + use<> {
    let digits = digits(start);
    let mut composite = vec![false; WINDOW];
    for prime in SMALL_PRIMES.iter().copied() {
        let residue = digits
            .iter()
            .fold(0, |rest, digit| ((rest << 32) | digit) % prime);
        // The first `at` where start + 2 * at is divisible: half of what is missing, where 2 is inverted modulo the prime.
        let half = prime.div_ceil(2);
        let first = (prime - residue) % prime * half % prime;
        let step = usize::try_from(prime).unwrap_or(WINDOW);
        let first = usize::try_from(first).unwrap_or(WINDOW);
        for at in (first..WINDOW).step_by(step) {
            composite[at] = true;
        }
    }
    (0_u64..)
        .zip(composite)
        .filter(|(_, composite)| !composite)
        .map(|(at, _)| 2 * at)
}

/// A number in digits of 32 bits, the highest first.
fn digits(number: &BigUint) -> Vec<u64> {
    let bytes = number.to_bytes_le();
    let value = |chunk: &[u8]| {
        chunk
            .iter()
            .rev()
            .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
    };
    bytes.chunks(4).map(value).rev().collect()
}

/// The odd primes below the bound, by Eratosthenes' sieve.
fn small_primes() -> Vec<u64> {
    let mut composite = vec![false; BOUND];
    let mut primes = Vec::new();
    for number in (3..BOUND).step_by(2) {
        if !composite[number] {
            primes.extend(u64::try_from(number));
            for multiple in (number * number..BOUND).step_by(2 * number) {
                composite[multiple] = true;
            }
        }
    }
    primes
}

#[cfg(test)]
mod tests;
