import { addOperator } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { newOperator } from '../client.ts';
import { Showcase } from '../showcase/showcase.ts';
import { pagesOf } from './pages.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

/** Buttons that are disabled for all roles: without something to save, add, or mark, and rows without details. */
const idle = /^(Save…|Add|Mark all as read)$|unchanged$/;

/** Explanations of what only admins may do, by path. */
const explained: readonly (readonly [path: string, text: string])[] = [
  ['/enrolment', 'Only admins can see tokens'],
  ['/settings', 'Only admins can see the configuration'],
  ['/operators', 'Only admins can change them'],
];

/** Names of buttons that send what only admins may send. */
const adminActions =
  /^(Add operator|New token|Add a machine|New window|New channel|Send test|Prune|Change retention|Rotate key|Revoke|Edit window|Remove window)/;

/** Returns the disabled buttons of the page that do not say why, and the buttons for admins. */
const badButtons = `(() => [...document.querySelectorAll('#content button, #content [role=button]')].flatMap((button) => {
  if (!button.checkVisibility()) return [];
  const name = (button.getAttribute('aria-label') ?? button.textContent).trim();
  const isDisabled = button.disabled || button.getAttribute('aria-disabled') === 'true';
  const explains = button.closest('[title]') !== null || button.hasAttribute('aria-describedby');
  return [{ name, isDead: isDisabled && !explains }];
}))()`;

describe.skipIf(reason !== null)(`the role operator${reason === null ? '' : ` (${reason})`}`, () => {
  test('finds no page that is refused, and no button that does nothing', async ({ tab, stage, orchestrator }) => {
    const showcase = await Showcase.open(stage, orchestrator);
    await tab.untraced();
    const olga = newOperator();
    const body = { public_key: olga.publicKey, username: 'olga', role: 'operator' as const };
    await orchestrator.call(addOperator, { body });
    await tab.signIn('/', orchestrator.clientFor(olga));
    const faults: string[] = [];
    for (const [address, path] of await pagesOf(await tab.addresses(), showcase)) {
      await tab.go(path);
      await tab.settled();
      const buttons = (await tab.page.evaluate(badButtons)) as { name: string; isDead: boolean }[];
      for (const { name, isDead } of buttons)
        if ((isDead && !idle.test(name)) || adminActions.test(name)) faults.push(`${address}: ${name}`);
      if ((await tab.page.getByRole('heading', { level: 1 }).count()) !== 1) faults.push(`${address}: no heading`);
    }
    expect(faults).toEqual([]);
    expect(tab.watch.faults).toEqual([]);

    // The windows of the calendar open a form only for admins.
    await tab.go('/windows');
    const calendar = tab.page.getByRole('table', { name: 'Calendar' });
    await calendar.getByText('new switches in Berlin').first().waitFor();
    expect(await calendar.getByRole('button').count()).toBe(0);
    // What only admins may do is explained.
    for (const [path, text] of explained) {
      await tab.go(path);
      await tab.page.getByText(text).first().waitFor();
    }
    await tab.go(`/terminals/${showcase.recording}`);
    await tab.page.getByText('Only the operator who opened it and admins can watch or replay it.').waitFor();
    await showcase.end();
  });
});
