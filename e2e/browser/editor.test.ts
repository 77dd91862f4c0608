import { createAssignment, getModule, uploadModule } from '@muster/protocol/http';
import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import type { Orchestrator } from '../harness.ts';
import { ShowcaseAgent } from '../showcase/agent.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

const head = (name: string) => `name: ${name}
supports: [{ platform: linux }]
parameters:
  port: { type: integer, default: 80, description: Where it listens }
  names: { type: list, merge: unique, default: [shop.example] }
resources:
  - id: conf
    resource:
`;
const conf = `      file-unix:
        path: /etc/shop.conf
        mode: "0644"
        content: "\${{ param.port }} \${{ attr.family }} \${{ basename('/a/b') }}"
`;

/** Connects an agent whose values come from two assignments. */
async function shopAgent(orchestrator: Orchestrator, name: string): Promise<ShowcaseAgent> {
  const agent = await ShowcaseAgent.create({ hostname: name, attributes: { platform: 'linux', family: 'debian' } });
  await agent.connect(orchestrator.agentPort, await orchestrator.token(name, { role: name }));
  const assign = (body: { name: string; modules: string[]; precedence: number; values: object }) => {
    const { name: assignment, modules, precedence, values } = body;
    const parameters = { [name]: values } as never;
    return orchestrator.call(createAssignment, {
      body: { name: assignment, modules, selector: `role=${name}`, precedence, parameters },
    });
  };
  await assign({ name: `all-${name}`, modules: [name], precedence: 0, values: { port: 8080, names: ['a.example'] } });
  await assign({ name: `site-${name}`, modules: [], precedence: 10, values: { port: 8443, names: ['b.example'] } });
  return agent;
}

const textOf = async (editor: Locator): Promise<string> =>
  (await editor.locator('.cm-line').allInnerTexts()).map((line) => line.replace(/\n$/, '')).join('\n');

/** Points at text in an element, once. The editor shows a tooltip when the pointer has rested there for a while. */
async function pointAt(page: Page, within: string, text: string): Promise<void> {
  const box = (await page.evaluate(`(() => {
    const texts = document.createTreeWalker(document.querySelector(${JSON.stringify(within)}), NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const at = node.data.indexOf(${JSON.stringify(text)});
      if (at === -1) continue;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + ${text.length});
      const { x, y, width, height } = range.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2 };
    }
    return null;
  })()`)) as { x: number; y: number } | null;
  if (box === null) throw new Error(`the page does not show ${text}`);
  await page.mouse.move(0, 0);
  await page.mouse.move(box.x, box.y);
}

describe.skipIf(reason !== null)(`module editor${reason === null ? '' : ` (${reason})`}`, () => {
  test('the module editor offers kinds, fields, parameters, attributes, and functions, and inserts them', async ({
    tab,
    orchestrator,
  }) => {
    const { page } = tab;
    await tab.signIn('/modules/new');
    const editor = page.getByRole('textbox', { name: 'Text of the new module' });
    await editor.click();
    // The editor offers nothing before it knows the schema.
    await tab.settled();
    await page.keyboard.insertText(`${head('typed')}      `);
    /** Types the beginning of a word, and returns the offered word. */
    const offered = async (typed: string, label: string): Promise<Locator> => {
      await page.keyboard.type(typed);
      const option = page.getByRole('option').filter({ has: page.getByText(label, { exact: true }) });
      await option.first().waitFor();
      return option.first();
    };
    const chosen = page.locator('.cm-completionInfo');

    await (await offered('file-u', 'file-unix')).click();
    await page.keyboard.insertText('/etc/shop.conf\n        ');
    const mode = await offered('mo', 'mode');
    expect(await mode.innerText()).toMatch(/^mode\s*text$/);
    await expect.poll(() => chosen.innerText()).toContain('octal');
    await mode.click();
    await page.keyboard.insertText('"0644"\n        content: "${{ ');
    await (await offered('param.', 'param.names')).waitFor();
    const port = await offered('po', 'param.port');
    await expect.poll(() => chosen.innerText()).toBe('Where it listens');
    // For 75 ms after the list has opened, the editor takes Enter as a line break.
    await page.evaluate('new Promise((later) => setTimeout(later, 200))');
    await page.keyboard.press('Enter');
    await port.waitFor({ state: 'detached' });
    await page.keyboard.insertText(' ${{ ');
    await (await offered('attr.fam', 'attr.family')).click();
    await page.keyboard.insertText(' ${{ ');
    const basename = await offered('basen', 'basename');
    expect(await basename.innerText()).toContain('basename(path)');
    await basename.click();
    await page.keyboard.insertText("'/a/b') }}\"\n");
    expect(await textOf(editor)).toBe(`${head('typed')}${conf}`);
    await page.getByText('Valid', { exact: true }).waitFor();
    await page.keyboard.press('Control+s');
    await page.getByRole('heading', { level: 1, name: 'typed' }).waitFor();
    expect(await orchestrator.call(getModule, { params: { name: 'typed' } })).toMatchObject({
      content: `${head('typed')}${conf}`,
    });
  });

  test('the module editor describes names with their values on an agent, and marks errors at their places', async ({
    tab,
    orchestrator,
  }) => {
    const { page } = tab;
    await orchestrator.call(uploadModule, { body: { name: 'shop', content: `${head('shop')}${conf}` } });
    const agent = await shopAgent(orchestrator, 'shop');
    await tab.signIn(`/modules/shop?agent=${agent.nodeId}`);
    const editor = page.getByRole('textbox', { name: 'Text of shop' });
    await editor.waitFor();
    await page.getByText('Point at a name to see its value on shop').waitFor();
    await tab.settled();
    const tooltip = page.locator('.cm-tooltip-hover');
    for (const [word, description] of [
      ['param.port', 'param.port: integer\nWhere it listens\nOn shop: 8443'],
      ['attr.family', 'attr.family: attribute\ndebian, redhat, suse, arch, or alpine\nOn shop: "debian"'],
      ['basename', 'basename(path)\nThe last part of a path.'],
      ['mode', 'mode: text'],
    ] as const) {
      await pointAt(page, '.cm-content', word);
      const shown = tooltip.filter({ hasText: description.split('\n', 1)[0] as string });
      await shown.waitFor();
      expect((await shown.innerText()).replaceAll(/\n+/g, '\n'), word).toContain(description);
    }

    await editor.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('  - id: page\n    resource: { file-unix: { path: "/${{ param.prot }}" } }\n');
    const errors = page.getByRole('region', { name: 'Errors' });
    const error = errors.getByRole('button');
    await expect.poll(() => error.innerText()).toMatch(/^14:\d+\n.*prot.*port/s);
    await page.getByText('1 error').waitFor();
    expect((await editor.locator('.cm-lintRange-error').allInnerTexts()).join('')).toBe('${{ param.prot }}');
    const marker = page.locator('.cm-gutter-lint .cm-lint-marker-error');
    const heights = async (of: Locator) => {
      const { y = 0, height = 0 } = (await of.boundingBox()) ?? {};
      return { top: y, bottom: y + height };
    };
    const line = await heights(editor.locator('.cm-line').nth(13));
    const dot = await heights(marker);
    expect(dot.top).toBeGreaterThanOrEqual(line.top);
    expect(dot.bottom).toBeLessThanOrEqual(line.bottom);
    await pointAt(page, '.cm-content', 'param.prot');
    await tooltip.locator('.cm-diagnostic-error').getByText('prot').first().waitFor();
    // The error moves the cursor to its place.
    await error.click();
    await page.keyboard.press('Shift+End');
    expect(await page.evaluate('getSelection().toString()')).toMatch(/^\$\{\{ param\.prot /);
    agent.disconnect();
  });

  test('the page of an agent shows each value with its origin and the values that it overrides', async ({
    tab,
    orchestrator,
  }) => {
    const { page } = tab;
    await orchestrator.call(uploadModule, { body: { name: 'stall', content: `${head('stall')}${conf}` } });
    const agent = await shopAgent(orchestrator, 'stall');
    await tab.signIn('/agents/stall');
    await page.getByRole('tab', { name: 'Values' }).click();
    const rows = page.getByRole('list', { name: 'Values of stall' }).locator('> li');
    await rows.first().waitFor();
    const shown = (await rows.allInnerTexts()).map((row) => row.split(/\s+/).join(' '));
    expect(shown).toEqual([
      'port 8443 site-stall precedence 10 overrode 8080 all-stall overrode 80 default',
      'names unique ["shop.example","a.example","b.example"] from ["b.example"] site-stall precedence 10 from ["a.example"] all-stall from ["shop.example"] default',
    ]);
    await rows.first().getByRole('link', { name: 'site-stall' }).click();
    await page.getByRole('heading', { level: 1, name: 'site-stall' }).waitFor();
    agent.disconnect();
  });
});
