import { getStatus } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { type Exit, exits } from '../../exit.ts';
import { sanitiseLine } from '../../text/sanitize.ts';

export const register: Register = (command, act) => {
  command
    .addHelpText(
      'after',
      '\nNeeds no sign-in. The exit code is 1 when the orchestrator says it is degraded.\n\nExample:\n  $ muster status',
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
  database: 'its database takes no writes: see its log',
  secrets_key: 'a key for secrets is missing: some of them cannot be used',
  metrics: 'samples of the machines cannot be stored; agents keep theirs: see its log',
  disk: 'its disk is nearly full: new work is refused until there is room',
} as const;
