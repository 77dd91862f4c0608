import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { type Announcement, announcementSigned, encodeAnnouncement } from '@muster/protocol/wire';

let nonces = 0;

/** Signs announcements with an orchestrator's key. */
export class TestAnnouncer {
  readonly privateKey: KeyObject;
  readonly publicKey: Buffer;

  /** @param pem private key; by default, a new key */
  constructor(pem?: string) {
    this.privateKey = pem === undefined ? generateKeyPairSync('ed25519').privateKey : createPrivateKey(pem);
    const { x } = this.privateKey.export({ format: 'jwk' });
    this.publicKey = Buffer.from(x as string, 'base64url');
  }

  get hex(): string {
    return this.publicKey.toString('hex');
  }

  /** Builds a valid datagram, in which `more` replaces fields. */
  datagram(more: Partial<Announcement> = {}): Buffer {
    const nonce = Buffer.alloc(16);
    nonce.writeUInt32BE(++nonces);
    const encoded = encodeAnnouncement({
      host: '127.0.0.1',
      port: 4747,
      orchestratorKey: this.publicKey,
      sentAt: Math.floor(Date.now() / 1000),
      nonce,
      ...more,
    });
    return Buffer.concat([encoded, sign(null, announcementSigned(encoded), this.privateKey)]);
  }
}

export async function sendDatagram(datagram: Uint8Array, port: number): Promise<void> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve, reject) =>
    socket.send(datagram, port, '127.0.0.1', (error) => (error ? reject(error) : resolve())),
  );
  socket.close();
}

export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const { port } = socket.address();
  await new Promise<void>((resolve) => socket.close(resolve));
  return port;
}
