declare module 'snappyjs' {
  const snappy: {
    compress(data: Uint8Array): Uint8Array;
    /** @throws when it is damaged, or larger than that once it is unpacked */
    uncompress(data: Uint8Array, maxLength?: number): Uint8Array;
  };
  export default snappy;
}
