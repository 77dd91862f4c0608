import type { ErrorCode } from '@muster/protocol';
import type { RefusalCode } from '@muster/protocol/wire';
import { networkOf } from '../../client-network.ts';
import { type Context, systemActor } from '../shared/context.ts';
import { audited, type Happening } from './audit.ts';
import { createRefusalBook, type DueRefusal, type Refused } from './refusal-throttle.ts';

/** Records refusals in the audit log: the first of each kind immediately, repetitions as hourly counts. */

type RefusalType = 'auth.refused' | 'auth.forbidden' | 'auth.plaintext_refused' | 'agent.refused';

export interface Refusal extends Pick<Happening, 'target' | 'summary'> {
  type: RefusalType;
  who: Refused;
  /** The refused party, by authenticated or claimed identity. Default: none. */
  actor?: Happening['actor'];
  code: ErrorCode | RefusalCode;
  ip: string;
  /** Additional data for the first refusal. */
  metadata?: { key_id: string };
  /** Distinguishes refusals that have the same type, code, and address. `anywhere` ignores the address. */
  same: { of: string; anywhere: boolean };
}

export interface Refusals {
  record(refusal: Refusal): Promise<void>;
  /** Records the repetition counts that are due. */
  sweep(): Promise<void>;
  /** Records all remaining repetition counts. */
  close(): Promise<void>;
}

/** Maximum number of events in one transaction. */
const atOnce = 200;
const maxAddressLength = 64;

const crowds: Readonly<Record<Refused, string>> = {
  stranger: 'sign-ins by unknown clients from many networks were refused; further refusals are only counted',
  claimed: 'sign-ins with an operator’s key from many networks were refused; further refusals are only counted',
  signed_in: 'many different requests of an operator were refused; further refusals are only counted',
  agent: 'many agents were refused; further refusals are only counted',
  unknown_agent: 'unknown agents from many networks were refused; further refusals are only counted',
};

export function createRefusals(context: Context): Refusals {
  const book = createRefusalBook<Happening<RefusalType>>();

  const write = async (refusals: readonly DueRefusal<Happening<RefusalType>>[]) => {
    for (let at = 0; at < refusals.length; at += atOnce) {
      const part = refusals.slice(at, at + atOnce);
      try {
        await context.db.write({
          name: 'audit/refused',
          statements: part.map((refusal) => audited(context, happeningOf(refusal))),
        });
      } catch (error) {
        for (const { revert } of refusals.slice(at)) revert();
        throw error;
      }
    }
  };

  return {
    async record({ type, who, actor = systemActor, target, summary, code, ip, metadata, same }) {
      const address = ip.slice(0, maxAddressLength);
      const about = { type, summary, ...(target ? { target } : {}) };
      const refusal = book.note(
        who,
        who === 'claimed' || who === 'signed_in' ? actor.id : '',
        [type, code, same.of, same.anywhere ? '' : networkOf(address)].join(' '),
        { ...about, actor, metadata: { code, ip: address, ...metadata } },
        () => ({ type, actor: who === 'claimed' || who === 'signed_in' ? actor : systemActor, summary: crowds[who] }),
        context.now(),
      );
      if (refusal !== null) await write([refusal]);
    },
    sweep: () => write(book.due(context.now())),
    close: () => write(book.rest(context.now())),
  };
}

function happeningOf({ what, count, since }: DueRefusal<Happening<RefusalType>>): Happening<RefusalType> {
  if (count === 0) return what;
  return {
    ...what,
    summary: `${what.summary} (${count} more since ${new Date(since).toISOString()})`,
    metadata: { ...what.metadata, count, since: new Date(since).toISOString() },
  };
}
