import { visibleText } from '../../parts/text.tsx';

/** Shows text in which backticks mark code, such as the description of a kind. */
export const CodeText = ({ text }: { readonly text: string }) =>
  text.split('`').map((part, at) =>
    at % 2 === 0 ? (
      visibleText(part)
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text keep their order
      <code key={at} className="font-mono text-[0.92em]">
        {visibleText(part)}
      </code>
    ),
  );
