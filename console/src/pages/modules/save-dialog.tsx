import { useState } from 'react';
import { freshModule, isModuleNotFound, uploadModule } from '../../api/modules/modules.ts';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Problem } from '../../parts/states.tsx';
import { visibleText } from '../../parts/text.tsx';
import { type Draft, draftStatus, filesOf, type Stored } from './draft.ts';
import { TextDiff } from './text-diff.tsx';

/** Another operator saved a revision first. The page behind the dialog shows both versions. */
class SavedMeanwhile extends Error {
  constructor(revision: number) {
    super(`Revision ${revision} was saved while you were editing. Review the differences and save again.`);
  }
}

/** Shows what a save changes in a stored module, and saves it. */
export function SaveDialog({
  open,
  onOpenChange,
  draft,
  name,
  onSaved,
}: {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly draft: Draft;
  /** The `name` in the text. The module is saved under this name. */
  readonly name: string;
  readonly onSaved: (stored: Stored) => void;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { base, text } = draft;
  const isRenamed = base.name !== name;
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      if (!isRenamed) {
        // If the module was removed during editing, saving creates it again.
        const latest = await freshModule(name).catch((error: unknown) => {
          if (isModuleNotFound(error)) return null;
          throw error;
        });
        if (latest !== null && draftStatus(draft, latest) === 'conflict') throw new SavedMeanwhile(latest.revision);
      }
      const stored = await uploadModule(name, text, isRenamed ? undefined : filesOf(draft));
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
      title={isRenamed ? `Save the new module ${visibleText(name)}` : `Save revision ${base.revision + 1}`}
      description={
        isRenamed
          ? 'It has no effect until an assignment or an operator applies it.'
          : 'It takes effect on each agent with the next apply.'
      }
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Continue editing</Button>
          <Button look="primary" busy={busy} onClick={() => void save()} autoFocus>
            Save
          </Button>
        </>
      }
    >
      <div className="space-y-3">
        {isRenamed && (
          <Callout tone="warn" title="The name was changed">
            It is saved as a new module, {visibleText(name)}. {visibleText(base.name)} is not changed.
          </Callout>
        )}
        {isRenamed ? (
          <Code text={text} />
        ) : (
          <TextDiff
            before={base.content}
            after={text}
            beforeLabel={`Revision ${base.revision}`}
            afterLabel="Your text"
          />
        )}
        {draft.filesOf !== undefined && !isRenamed && (
          <Callout tone="info" title={`The files of revision ${draft.filesOf} are restored as well`}>
            They replace those of revision {base.revision}.
          </Callout>
        )}
        <Problem error={error} />
      </div>
    </Dialog>
  );
}
