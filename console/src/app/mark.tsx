import mark from '../mark.svg';

export const Mark = ({ className }: { readonly className?: string }) => <img src={mark} alt="" className={className} />;
