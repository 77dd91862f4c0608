/** Key caps of modifiers. */
const appleKeys: Readonly<Record<string, string>> = { Mod: '⌘' };
const otherKeys: Readonly<Record<string, string>> = { Mod: 'Ctrl' };
const isApple = (): boolean => /^(Mac|iP)/.test(navigator.platform);

/**
 * Keys to press one after another, separated by spaces: `g a`. `Mod` is the command key on Apple's keyboards, and the
 * control key on others.
 */
export function Keys({ keys }: { readonly keys: string }) {
  const caps = isApple() ? appleKeys : otherKeys;
  return (
    <span className="inline-flex items-center gap-0.5">
      {keys.split(' ').map((key, index) => (
        <kbd
          // biome-ignore lint/suspicious/noArrayIndexKey: a fixed list
          key={index}
          className="inline-flex h-5 min-w-5 items-center justify-center rounded border bg-raised px-1 font-sans text-2xs text-muted"
        >
          {caps[key] ?? key}
        </kbd>
      ))}
    </span>
  );
}
