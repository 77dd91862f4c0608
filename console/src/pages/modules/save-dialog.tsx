import { useState } from 'react';
import { freshModule, isNoModule, uploadModule } from '../../api/modules.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Problem } from '../../parts/states.tsx';
import { visibleText } from '../../parts/text.tsx';
import { type Draft, type Stored, standing } from './draft.ts';
import { TwoTexts } from './two-texts.tsx';

/** Somebody else was faster. The page, which knows both texts, shows them. */
class StoredMeanwhile extends Error {
  constructor(revision: number) {
    super(`Somebody stored revision ${revision} while you were writing: see what differs, and save again.`);
  }
}

/** What will change, before it is stored. */
export function SaveDialog({
  open,
  onOpenChange,
  draft,
  name,
  action = 'Save',
  onSaved,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly draft: Draft;
  /** As it is written in the text: that is the module it is stored as. */
  readonly name: string;
  /** What the button says. */
  readonly action?: string;
  readonly onSaved: (stored: Stored) => void;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { base, text } = draft;
  const isOther = base !== null && base.name !== name;
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      if (base !== null && !isOther) {
        // Where it was removed meanwhile, what was written makes it anew.
        const latest = await freshModule(name).catch((error: unknown) => {
          if (isNoModule(error)) return null;
          throw error;
        });
        if (latest !== null && standing(draft, latest) === 'conflict') throw new StoredMeanwhile(latest.revision);
      }
      const stored = await uploadModule(name, text);
      onOpenChange(false);
      onSaved(stored);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        if (!next) setError(null);
        onOpenChange(next);
      }}
      wide
      title={
        base === null || isOther ? `Save the new module ${visibleText(name)}` : `Save revision ${base.revision + 1}`
      }
      description={
        base === null || isOther
          ? 'It does nothing before an assignment or an operator applies it.'
          : 'It takes effect on each agent with the next apply there.'
      }
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Go on writing</Button>
          <Button look="primary" busy={busy} onClick={() => void save()} autoFocus>
            {action}
          </Button>
        </>
      }
    >
      <div className="space-y-3">
        {isOther && (
          <Callout tone="warn" title="The name in it was changed">
            It is stored as a module of its own, {visibleText(name)}. {visibleText(base.name)} stays as it is.
          </Callout>
        )}
        {base === null || isOther ? (
          <Code text={text} />
        ) : (
          <TwoTexts
            before={base.content}
            after={text}
            beforeLabel={`Revision ${base.revision}, as it is stored`}
            afterLabel="What you save"
          />
        )}
        <Problem error={error} />
      </div>
    </Dialog>
  );
}
