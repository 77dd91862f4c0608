import { getStatus } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { type Exit, exits } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';

export const register: Register = (command, act) => {
  command
    .addOption(watchOption())
    .addHelpText(
      'after',
      '\nNeeds no sign-in. Exits with 1 when the orchestrator reports that it is degraded.\n--watch follows the events if you are signed in; otherwise, it asks every 5 s.\n\nExample:\n  $ muster status',
    )
    .action(act(status));
};

async function status(context: Context): Promise<Exit> {
  const { out } = context;
  const { color } = out.style;
  const { call, target } = await context.connect();
  const found = await call(getStatus, {});
  const well = found.status === 'ok';
  if (out.json) out.data({ url: target.url, ...found });
  out.print(`${well ? color.green('ok') : color.red(sanitiseLine(found.status))}  ${target.url}`);
  for (const reason of found.reasons) out.print(`            ${troubles[reason]}`);
  out.print(`version     ${sanitiseLine(found.version)}, protocol ${found.protocol_version}`);
  out.print(`public key  ${sanitiseLine(found.public_key)}`);
  return well ? exits.done : exits.failed;
}

const troubles = {
  database: 'the database does not accept writes; see the log',
  secrets_key: 'an encryption key for secrets is missing; some secrets cannot be used',
  metrics: 'samples cannot be stored, and agents keep theirs; see the log',
  bus: 'messages from other replicas do not arrive through NATS; changes appear a few seconds late; see the log',
  disk: 'the disk is nearly full; new work is refused until space is free',
  replica: 'a replica is missing, or has another release or configuration; see: muster replicas list',
} as const;
