import { webLogin } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { sanitiseLine } from '../../text/sanitize.ts';

export const register: Register = (command, act) => {
  command
    .addHelpText(
      'after',
      '\nPrints the link and opens nothing: whoever opens it first, within 60 s, is you in that browser.\n\nExample:\n  $ muster web-login',
    )
    .action(act(login));
};

async function login(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const made = await call(webLogin, {});
  if (out.json) out.data(made);
  out.print(sanitiseLine(made.url));
  out.note('Good once, within 60 s: whoever opens it is you in that browser.');
  return undefined;
}
