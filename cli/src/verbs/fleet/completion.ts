import { completionScripts } from '../../completion/scripts.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { parseChoice } from '../../text/values.ts';

export const register: Register = (command, act) => {
  command
    .argument('<shell>', 'One of: bash, zsh, or fish')
    .addHelpText(
      'after',
      '\nCompletes verbs, options, and names: agents, modules, secrets … Reads names from the\norchestrator if you are signed in, and waits at most about a second. The script says where to install it.\n\nExamples:\n  $ muster completion fish > ~/.config/fish/completions/muster.fish\n  $ source <(muster completion bash)',
    )
    .action(act(completion));
};

async function completion({ out }: Context, typed: string): Promise<undefined> {
  const shell = parseChoice('the shell', typed, Object.keys(completionScripts) as (keyof typeof completionScripts)[]);
  out.raw(completionScripts[shell]);
}
