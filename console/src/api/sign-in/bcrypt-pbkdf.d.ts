declare module 'bcrypt-pbkdf' {
  const bcrypt: {
    /** Derives the key and writes it to the output. Returns 0, or -1 if an argument is invalid. */
    pbkdf(
      passphrase: Uint8Array,
      passphraseLength: number,
      salt: Uint8Array,
      saltLength: number,
      key: Uint8Array,
      keyLength: number,
      rounds: number,
    ): number;
  };
  export default bcrypt;
}
