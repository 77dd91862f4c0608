declare module 'snappyjs' {
  const snappy: {
    compress(data: Uint8Array): Uint8Array;
    /** @throws Error if the data is damaged, or longer than `maxLength` when decompressed */
    uncompress(data: Uint8Array, maxLength?: number): Uint8Array;
  };
  export default snappy;
}
