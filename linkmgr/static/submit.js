// Sends the page's form as soon as it is there.
document.forms[0].submit();
