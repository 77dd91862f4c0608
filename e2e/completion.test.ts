import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { completionScripts } from '../cli/src/completion/scripts.ts';
import { sampled } from '../lib/test/sampled.ts';
import { muster, root } from '../tools/suite/cli.ts';
import { test } from './harness.ts';
import { operatorEnvironment } from './person.ts';
import { bashCompletion, missing, type Requirement } from './requirements.ts';
import { Tmux } from './tmux.ts';

/** Commands that start an interactive shell without the user's files and load the completion script. */
const shells: readonly { name: string; needs: readonly Requirement[]; start: string; load: string }[] = [
  { name: 'bash', needs: [], start: 'bash --norc', load: 'source <(muster completion bash)' },
  { name: 'bash with bash-completion', needs: ['bash-completion'], start: 'bash --norc', load: `. ${bashCompletion}` },
  {
    name: 'zsh',
    needs: ['zsh'],
    start: 'zsh -f',
    load: 'autoload -Uz compinit; compinit -u -d "$HOME/zcompdump"; source <(muster completion zsh)',
  },
  { name: 'fish', needs: ['fish'], start: 'fish --no-config', load: 'muster completion fish | source' },
];

/** `npm test` uses one shell, selected at random. `npm run soak -- kill-steps` uses all. */
test.for(sampled(shells, 1))(
  '$name completes subcommands, agent names, options, and files',
  async ({ needs, start, load }, { stage, skip, onTestFinished }) => {
    const reason = missing('linux', 'tmux', ...needs);
    if (reason !== null) skip(reason);
    const orchestrator = await stage.orchestrator();
    await stage.agent(orchestrator, 'web-1');
    const home = stage.folder('home');
    const lazy = join(home, 'bash-completion', 'completions');
    mkdirSync(lazy, { recursive: true });
    writeFileSync(join(lazy, 'muster'), completionScripts.bash);
    writeFileSync(join(home, 'some-module.yml'), '');
    const env = {
      ...operatorEnvironment(stage, orchestrator),
      HOME: home,
      XDG_DATA_HOME: home,
      PATH: `${join(root, 'cli/bin')}:${process.env.PATH}`,
    };
    const window = await Tmux.start(stage, env, { cols: 100, rows: 100 }, onTestFinished);
    await window.seesLine('near>');
    // Completion never signs in.
    await window.enter(`cd '${home}' && ${muster} login && exec ${start}`);
    await window.sees('the sign-in', (lines) => lines.some((line) => line.startsWith('Signed in at')));
    await window.enter(load);
    // The shell computes the marker, so that the test does not mistake the echo of the command for its output.
    await window.enter("echo lo''aded");
    await window.seesLine('loaded');
    const completes = async (typed: string, to: string) => {
      await window.type(typed);
      const shown = (lines: string[]) => lines.some((line) => line.trimEnd().endsWith(to));
      // Presses Tab again, because completion yields nothing if the orchestrator exceeds the CLI's time limit.
      const pressTab = async (timeoutMs?: number) => {
        await window.press('Tab');
        await window.sees(to, shown, timeoutMs);
      };
      await pressTab(20_000)
        .catch(() => pressTab(20_000))
        .catch(() => pressTab());
      await window.press('C-u');
    };
    await completes('muster agents app', 'muster agents approve');
    await completes('muster agent app', 'muster agent approve');
    await completes('muster agents show we', 'muster agents show web-1');
    await completes('muster agents list --sta', 'muster agents list --status');
    await completes('muster modules upload some', 'muster modules upload some-module.yml');
    await window.type('muster agents sh');
    await window.press('Tab');
    await window.type('we');
    await window.press('Tab', 'Enter');
    await window.seesLine('web-1  approved');
    expect(await window.modes()).toContain('alternate_on=0');
  },
);
