import { hash } from 'node:crypto';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { Machine } from '../provider/provider.ts';
import { type Published, unpublish } from './challenge.ts';
import type { KeyType } from './csr.ts';

/** Keeps an order, with its private key and its proofs, in the data directory until its certificate is placed. */

type Declared = ResolvedResource<'certificate-acme'>;

export interface Begun {
  directory: string;
  domains: string[];
  keyType: KeyType;
  /** URL of the order; empty if only its proofs are left. */
  order: string;
  /** The private key of the certificate in PEM. */
  key: string;
  published: Published[];
  /** When the order was begun, in milliseconds since the Unix epoch. */
  at: number;
}

/** Maximum number of records to keep of proofs that could not be removed. */
const maxLeft = 200;

/** Returns the name of a private file. */
export const nameOf = (kind: 'account' | 'order' | 'issued', text: string): string =>
  `acme-${kind}-${hash('sha256', text).slice(0, 32)}`;
const orderName = ({ body }: Declared): string => nameOf('order', body.path);

export function begunBefore(resource: Declared, { privateFiles }: Pick<Machine, 'privateFiles'>): Begun | null {
  const kept = privateFiles.read(orderName(resource));
  return kept === null ? null : (JSON.parse(kept) as Begun);
}

export const keep = (resource: Declared, order: Begun, machine: Machine): void =>
  machine.privateFiles.write(orderName(resource), JSON.stringify(order));

/** Drops an order that cannot be continued. Proofs that could not be removed remain recorded. */
export function drop(resource: Declared, order: Begun, machine: Machine): void {
  const published = order.published.slice(-maxLeft);
  if (published.length === 0) machine.privateFiles.remove(orderName(resource));
  else keep(resource, { ...order, order: '', key: '', published }, machine);
}

/** Removes published proofs. A failure does not fail the request, because an old proof proves nothing. */
export async function withdraw(resource: Declared, order: Begun, machine: Machine): Promise<void> {
  if (order.published.length === 0) return;
  const left: Published[] = [];
  for (const published of order.published)
    try {
      await unpublish(resource, published, machine);
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      machine.warn(`failed to remove the proof for ${published.domain}: ${error.message}`);
      left.push(published);
    }
  order.published = left;
  keep(resource, order, machine);
}

/** Removes an order and its proofs once the certificate is in place or removed. */
export async function forgetOrder(resource: Declared, machine: Machine): Promise<void> {
  const begun = begunBefore(resource, machine);
  if (begun === null) return;
  await withdraw(resource, begun, machine);
  machine.privateFiles.remove(orderName(resource));
}
