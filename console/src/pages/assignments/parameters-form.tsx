import { useQueries } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { useMemo } from 'react';
import { moduleQuery } from '../../api/modules/modules.ts';
import { outlineOf } from '../../editor/outline.ts';
import { IconButton } from '../../parts/button.tsx';
import { Input, Select, TextArea } from '../../parts/form/field.tsx';
import { Skeleton } from '../../parts/states.tsx';
import { Line, visibleText } from '../../parts/text.tsx';
import { fieldsOf, type ParameterField, type ParameterTexts, type ParameterValues } from './parameters.ts';

/** Input fields for the parameters that the stored modules declare. */
export function useParameterFields(
  modules: readonly string[],
  given: ParameterValues,
): { fields: readonly ParameterField[]; isPending: boolean } {
  const texts = useQueries({
    queries: modules.map((name) => moduleQuery(name)),
    combine: (results) => ({
      contents: results.map(({ data }) => data?.content),
      isPending: results.some(({ isPending }) => isPending),
    }),
  });
  const fields = useMemo(() => {
    const declared = new Map(
      modules.map((name, index) => [name, outlineOf(texts.contents[index] ?? '').parameters] as const),
    );
    return fieldsOf(modules, declared, given);
  }, [modules, texts, given]);
  return { fields, isPending: texts.isPending };
}

export function ParametersForm({
  fields,
  texts,
  faults,
  isPending,
  onChange,
}: {
  readonly fields: readonly ParameterField[];
  readonly texts: ParameterTexts;
  readonly faults: Readonly<Record<string, string>>;
  readonly isPending: boolean;
  readonly onChange: (texts: ParameterTexts) => void;
}) {
  if (isPending && fields.length === 0) return <Skeleton className="h-16 w-full" />;
  if (fields.length === 0) return <p className="text-muted text-sm">These modules take no parameters.</p>;
  const modules = [...new Set(fields.map(({ module }) => module))];
  return (
    <div className="space-y-6">
      {modules.map((module) => (
        <fieldset key={module} className="min-w-0">
          <legend className="mb-2 flex max-w-full font-medium text-muted text-sm">
            <Line text={module} maxLength={64} />
          </legend>
          <div className="grid gap-x-4 gap-y-3 sm:grid-cols-2">
            {fields
              .filter((field) => field.module === module)
              .map((field) => (
                <ParameterInput
                  key={field.key}
                  field={field}
                  text={texts[field.key] ?? ''}
                  fault={faults[field.key]}
                  onChange={(text) => onChange({ ...texts, [field.key]: text })}
                />
              ))}
          </div>
        </fieldset>
      ))}
    </div>
  );
}

function ParameterInput({
  field: { name, type, description, fallback },
  text,
  fault,
  onChange,
}: {
  readonly field: ParameterField;
  readonly text: string;
  readonly fault: string | undefined;
  readonly onChange: (text: string) => void;
}) {
  const shown = visibleText(name);
  const label = (
    <>
      {shown} <span className="font-normal text-muted text-xs">{type === 'unknown' ? 'not declared' : type}</span>
    </>
  );
  const common = {
    label,
    hint: description === null ? undefined : visibleText(description),
    error: fault,
    value: text,
  };
  const placeholder = fallback === null ? 'must be set' : fallback === '' ? 'empty by default' : visibleText(fallback);
  if (type === 'boolean')
    return (
      <Select {...common} onChange={(event) => onChange(event.target.value)}>
        <option value="">{fallback === null ? 'Choose' : `Default: ${fallback}`}</option>
        <option value="true">true</option>
        <option value="false">false</option>
      </Select>
    );
  if (type === 'list' || type === 'map')
    return (
      <div className="sm:col-span-2">
        <TextArea
          {...common}
          className="font-mono text-xs"
          placeholder={placeholder}
          rows={Math.min(10, Math.max(3, text.split('\n').length))}
          onChange={(event) => onChange(event.target.value)}
        />
      </div>
    );
  if (type === 'unknown')
    return (
      <div className="flex items-end gap-1">
        <div className="flex-1">
          <Input {...common} readOnly />
        </div>
        {text !== '' && (
          <IconButton label={`Remove ${shown}`} icon={<X className="size-4" />} onClick={() => onChange('')} />
        )}
      </div>
    );
  return (
    <Input
      {...common}
      inputMode={type === 'string' ? 'text' : 'decimal'}
      placeholder={placeholder}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
