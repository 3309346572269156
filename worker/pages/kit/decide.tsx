/** A person's answer to what a program asks for: the form's `decision` is `approve` or `deny`. */
export const Decide = ({ approve }: { approve: string }) => (
  <div class="decide">
    <button class="primary" type="submit" name="decision" value="approve">
      {approve}
    </button>
    <button type="submit" name="decision" value="deny">
      Deny
    </button>
  </div>
);
