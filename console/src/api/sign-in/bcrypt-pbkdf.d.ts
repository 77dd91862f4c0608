declare module 'bcrypt-pbkdf' {
  const bcrypt: {
    /** Writes the key. @returns 0, or -1 when it cannot be made of these */
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
