import { webLogin } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { sanitiseLine } from '../../text/sanitize.ts';

export const register: Register = (command, act) => {
  command
    .addHelpText(
      'after',
      '\nPrints a link without opening it. The link works once, within 60 s, and signs in to the console as you.\n\nExample:\n  $ muster web-login',
    )
    .action(act(login));
};

async function login(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const made = await call(webLogin, {});
  if (out.json) out.data(made);
  out.print(sanitiseLine(made.url));
  out.note('The link works once, within 60 s, and signs in to the console as you.');
}
