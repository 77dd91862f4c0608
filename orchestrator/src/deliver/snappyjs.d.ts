declare module 'snappyjs' {
  const snappy: {
    compress(data: Uint8Array): Uint8Array;
    /** @throws when the data is damaged or unpacks to more than `maxLength` */
    uncompress(data: Uint8Array, maxLength?: number): Uint8Array;
  };
  export default snappy;
}
