import { getOperator } from '@muster/protocol/http';
import type { Context } from '../../context/context.ts';
import { trustServer } from '../../context/profile.ts';
import type { Register } from '../../context/verb.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { duration } from '../../text/style.ts';

export const register: Register = (command, act) => {
  command
    .option('--accept-new', 'Trust an unknown certificate without asking, and pin it')
    .addHelpText(
      'after',
      '\nEvery command signs in when necessary. This one checks that you can sign in, and trusts the certificate of --fingerprint.\n\n--accept-new is for test environments: it trusts whichever server answers first. It accepts neither a certificate that differs from\na trusted one, nor one that is faulty, such as expired or for another name.\n\nExample:\n  $ muster login --url https://orchestrator.example:4748 --fingerprint 9F:86:D0:81…',
    )
    .action(act(login));
};

async function login(context: Context): Promise<undefined> {
  const { out, now, env } = context;
  const key = await context.key();
  const { call, session, target } = await context.connect();
  const { expires_at } = await session.signIn();
  // Stores the fingerprint only after the sign-in, because the connection would have failed with a wrong one.
  if (target.given !== null && target.given !== target.stored) await trustServer(env, target.url, target.given, now);
  const operator = await call(getOperator, { params: { operator_id: key.operatorId } });
  if (out.json)
    out.data({
      url: target.url,
      operator_id: operator.operator_id,
      username: operator.username,
      role: operator.role,
      expires_at,
    });
  out.print(
    `Signed in at ${target.url} as ${out.style.color.bold(sanitiseLine(operator.username))} (${operator.role}), for ${duration(Math.ceil((expires_at - now()) / 60) * 60)}.`,
  );
}
