declare module 'bcrypt-pbkdf' {
  const bcrypt: {
    /** Derives the key and writes it to the output. @returns 0, or -1 for invalid arguments */
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
