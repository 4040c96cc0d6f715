//! RSA keys. The primes come from `crypto-primes`, which needs a third of the processor time of the crate `rsa`
//! (docs/adr/0018); `rsa` builds the [`RsaPrivateKey`] from the primes and checks the key. [`EcdsaKey`] is a key on a
//! curve.
//!
//! A crate of its own, because the search for primes and the arithmetic of curves are generic code: generic code is
//! optimised like the calling crate, and this crate is optimised for speed in every profile (docs/adr/0066).

mod ecdsa;

use std::sync::LazyLock;

use crypto_bigint::BoxedUint;
use crypto_bigint::rand_core::{CryptoRng, UnwrapErr};
use crypto_primes::hazmat::{SetBits, SmallFactorsSieveFactory};
use crypto_primes::{Flavor, fips, sieve_and_find};
use getrandom::SysRng;
use rsa::{BigUint, RsaPrivateKey};
use zeroize::Zeroizing;

pub use ecdsa::EcdsaKey;

/// Reason why no key was generated.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Public exponent of all keys, as in Go and openssl.
const EXPONENT: u32 = 65537;
/// Security level of the prime tests in bits: a composite number passes as a prime with a probability of at most 2 to
/// the power of minus [`CERTAINTY`] (FIPS 186-5).
const CERTAINTY: u32 = 128;

/// Size of the primes of a 2048-bit key, in bits.
const USUAL: u32 = 1024;
/// Options of the tests for primes of [`USUAL`] bits, cached: finding the number of tests takes a tenth of the time of
/// a key.
static USUAL_TESTS: LazyLock<Option<fips::FipsOptions>> =
    LazyLock::new(|| fips::FipsOptions::with_error_bound(USUAL, CERTAINTY));

/// Generates a key with a modulus of `bits` bits, an even number such as 2048.
///
/// # Errors
/// The system has no random numbers, or no number of tests suffices for primes of this size.
pub fn generate(bits: u32) -> Result<RsaPrivateKey, Failure> {
    let mut random = UnwrapErr(SysRng);
    let half = bits / 2;
    let options = match half {
        USUAL => *USUAL_TESTS,
        other => fips::FipsOptions::with_error_bound(other, CERTAINTY),
    };
    let options = options.ok_or("no number of tests suffices for primes of this size")?;
    let mut prime = || prime(half, options, &mut random);
    loop {
        let (p, q) = (prime()?, prime()?);
        // Fails for a pair of equal primes, or if one of them minus one is a multiple of the exponent.
        if let Ok(key) = RsaPrivateKey::from_p_q(p, q, BigUint::from(EXPONENT)) {
            key.validate()?;
            return Ok(key);
        }
    }
}

/// Generates a prime with the two highest bits set, so that a product of two primes has twice as many bits.
fn prime(
    bits: u32,
    options: fips::FipsOptions,
    random: &mut impl CryptoRng,
) -> Result<BigUint, Failure> {
    let sieve = SmallFactorsSieveFactory::<BoxedUint>::new(Flavor::Any, bits, SetBits::TwoMsb)
        .map_err(|error| error.to_string())?;
    let is_prime = |random: &mut _, candidate: &BoxedUint| {
        fips::is_prime(random, Flavor::Any, candidate, options)
    };
    let prime = sieve_and_find(random, sieve, is_prime)
        .map_err(|error| error.to_string())?
        .ok_or("no prime was found")?;
    let bytes = Zeroizing::new(Zeroizing::new(prime).to_be_bytes());
    Ok(BigUint::from_bytes_be(&bytes))
}

#[cfg(test)]
mod tests {
    use rsa::traits::{PrivateKeyParts, PublicKeyParts};

    use super::*;

    #[test]
    fn a_key_has_two_primes_of_half_its_size_and_all_its_bits() {
        for _ in 0..3 {
            let key = generate(2048).unwrap();
            assert_eq!((key.n().bits(), key.e()), (2048, &BigUint::from(EXPONENT)));
            let [p, q] = key.primes() else {
                panic!("not two primes")
            };
            assert_eq!((p.bits(), q.bits()), (1024, 1024));
            assert_eq!(&(p * q), key.n());
        }
        assert_eq!(generate(3072).unwrap().n().bits(), 3072);
    }

    #[test]
    fn a_key_signs_what_others_verify() {
        use ring::signature::{self, UnparsedPublicKey};
        use rsa::pkcs1::{EncodeRsaPrivateKey, EncodeRsaPublicKey};
        let key = generate(2048).unwrap();
        let pair = signature::RsaKeyPair::from_der(key.to_pkcs1_der().unwrap().as_bytes()).unwrap();
        let mut signed = vec![0; pair.public().modulus_len()];
        let random = ring::rand::SystemRandom::new();
        pair.sign(&signature::RSA_PKCS1_SHA256, &random, b"text", &mut signed)
            .unwrap();
        let public = key.to_public_key().to_pkcs1_der().unwrap();
        UnparsedPublicKey::new(&signature::RSA_PKCS1_2048_8192_SHA256, public.as_bytes())
            .verify(b"text", &signed)
            .unwrap();
    }
}
